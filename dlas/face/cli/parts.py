"""The commands for parts: ``dlas list`` and ``dlas check``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from dlas.errors import InputError, unknown
from dlas.face.cli.values import option_of
from dlas.face.console import terminal

if TYPE_CHECKING:
    from dlas.testing.children import CheckResult, ChildCheck

AXES = ("dataset", "model", "compression", "algorithm", "compiler", "hardware")


def list_parts(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[AXIS | PART]", help="All axes when left out.", autocompletion=lambda: AXES),
    ] = None,
) -> None:
    """List the parts of each axis with their options, or tell everything about one part."""
    from dlas.face.console import parts as render
    from dlas.sweep.study import parts
    from dlas.sweep.study.describing import describe
    from dlas.sweep.study.outlines import FINDER

    if name is None or name in parts.HOMES:
        terminal.console().print(render.listing([name] if name else parts.HOMES))
        return
    axes = [axis for axis in parts.HOMES if name in FINDER.names(axis)]
    if not axes:
        every = {part for axis in parts.HOMES for part in FINDER.names(axis)}
        raise unknown("axis or part", name, (*parts.HOMES, *every))
    for axis in axes:
        terminal.console().print(render.in_full(describe(axis, name)), highlight=False)


def check(
    axis: Annotated[
        str,
        typer.Argument(
            metavar="AXIS | NETWORK",
            help="The part's axis; or by itself a network: mine.py:Net, a file, a model's name.",
            autocompletion=lambda: AXES,
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="A part's name, or module:Class.")] = None,
    options: Annotated[
        list[str] | None, typer.Argument(help="Options as a study writes them, e.g. level=0.5.")
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Run all checks in this process, for debuggers.")
    ] = False,
    to: Annotated[Path | None, typer.Option(help="Write a network as this ONNX file.")] = None,
    size: Annotated[int | None, typer.Option(min=1, help="Height and width of a network's images.")] = None,
) -> None:
    """Check a part against its axis's contract, or a network in ONNX Runtime against itself in PyTorch."""
    from dlas.sweep.study import parts
    from dlas.testing.children import checks

    if name is None and axis not in parts.HOMES:
        _check_network(axis, size, to)
        return
    if axis not in parts.HOMES:
        raise unknown("axis", axis, parts.HOMES)
    if name is None:
        raise InputError(f"give the name of a part of the axis {axis}; `dlas list {axis}` lists them")
    if to is not None or size is not None:
        raise InputError("`to=` and `size=` are for a network by itself: `dlas check mine.py:Net`")
    part_class = parts.find(axis, name)
    values = dict(map(option_of, options or ()))
    defaults = part_class.options()
    if missing := [key for key in defaults if defaults[key] is dataclasses.MISSING and key not in values]:
        raise InputError(f"{axis} {name!r} needs options ({', '.join(missing)}), which a check cannot guess")
    todo = checks(axis, name, part_class.validate(name, values))
    order = [one.what for one in todo]
    found = sorted(_findings(todo, in_process), key=lambda finding: order.index(finding.what))
    shown = " ".join([name, *(options or ())])
    if axis == "algorithm":
        _print_convolutions(shown, found)
    wrong = [finding for finding in found if finding.outcome == "wrong"]
    for finding in wrong:
        shapes = f"{finding.what!r} ({finding.shapes}): " if finding.shapes else ""
        terminal.complain(f"{shown}: {shapes}{finding.reason}")
    if wrong:
        raise typer.Exit(1)
    if axis != "algorithm":
        terminal.console().print(f"{shown}: keeps the contract of a {axis}", highlight=False, markup=False)


def _check_network(network: str, size: int | None, to: Path | None) -> None:
    """Compare a network's ONNX graph with the network, and write it if a file is given."""
    from dlas.bench.store.cache import default_root
    from dlas.sweep.study import parts
    from dlas.sweep.study.networks import is_network
    from dlas.testing.exported import check_export

    if not is_network(network) and network not in parts.names("model"):
        raise unknown("axis or network", network, (*parts.HOMES, *parts.names("model")))
    if to is not None and to.suffix != ".onnx":
        raise InputError(f"`to={str(to)!r}`: a file NAME.onnx is expected")
    checked = check_export(network, size, default_root(), to, terminal.progress)
    named = checked.network
    shape = f"images [n, {named.channels}, {named.size}, {named.size}], outputs [n, {named.classes}]"
    same = f"the same in ONNX Runtime, to {checked.deviation:.1g} of the largest output"
    terminal.say(f"{named.label}: {shape}; {same}")
    if to is not None:
        terminal.say(f"written: {to}")


def _findings(todo: Sequence[ChildCheck], in_process: bool) -> Iterator[CheckResult]:
    """Yield the findings of all checks, with a bar of progress on a terminal."""
    from dlas.sweep.engine.session import Session
    from dlas.testing.children import findings

    with (
        TemporaryDirectory(prefix="dlas-check-") as logs,
        Session.open("inline" if in_process else "forked") as session,
    ):
        found = findings(todo, session.workers.runner(), Path(logs))
        console = Console(stderr=True)
        yield from track(
            found,
            "checking",
            len(todo),
            console=console,
            transient=True,
            disable=in_process or not console.is_terminal,
        )


def _print_convolutions(shown: str, found: Sequence[CheckResult]) -> None:
    """Print how many convolutions an algorithm computes rightly, and which it declines."""
    outcomes = Counter(finding.outcome for finding in found)
    line = f"{shown}: right on {outcomes['right']} of {outcomes.total()} convolutions"
    wrong = f", wrong on {outcomes['wrong']}" if outcomes["wrong"] else ""
    terminal.console().print(line + wrong, highlight=False, markup=False)
    for finding in found:
        if finding.outcome == "declined":
            terminal.console().print(
                f"  declines {finding.what!r}: {finding.reason}", highlight=False, markup=False
            )
