"""Run a study from the command line, and print how it ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from dlas.console import terminal
from dlas.engine.point_run import Summary
from dlas.engine.sweep import RowWriter, Sweep
from dlas.errors import InputError
from dlas.processes.interface import Runner
from dlas.rows.labels import points
from dlas.store.cache import Cache
from dlas.study.axes import AXES
from dlas.study.study import Expansion, Study, check_size

Writer = TypeVar("Writer", bound=RowWriter)
UNCONTAINED = "all steps run in this process: no limit of time or memory holds, and a crash ends the sweep"


def run_study(
    study: Study,
    cache: Callable[[], Cache],
    results: Callable[[Cache], AbstractContextManager[Writer]],
    *,
    jobs: int = 1,
    retry: Collection[str] = (),
    keep_builds: bool = False,
    until: str = "measure",
    in_process: bool = False,
) -> Writer:
    """Run a study, and return its results.

    Parameters
    ----------
    study : Study
    cache : callable
        Creates the cache after the study has been checked.
    results : callable
        Opens the writer of rows, a :class:`dlas.rows.results.Results`.
    jobs, retry, keep_builds, until
        As for :class:`dlas.engine.sweep.Sweep`.
    in_process : bool
        Run the steps in this process, one at a time.

    Raises
    ------
    InputError
        If the study is invalid; nothing has been written then.
    typer.Exit
        If the sweep did not finish.
    """
    if in_process and jobs > 1:
        raise InputError(f"--in-process runs one step at a time, and --jobs {jobs} asks for more")
    check_size(study)
    check_parts(study)
    from dlas.console.progress import SweepProgress

    console = terminal.console()
    total = _announce(study, console, in_process)
    varying = [axis for axis in AXES if len(study.axes[axis]) > 1] or ["model"]
    progress = SweepProgress(total, console, varying, live=not in_process)
    with closing(_runner(in_process)) as runner:
        store = cache()
        with results(store) as writer, progress:
            sweep = Sweep(
                study,
                writer,
                store,
                runner,
                progress,
                jobs=jobs,
                retry=retry,
                keep_builds=keep_builds,
                until=until,
            )
            _sweep(sweep, console)
    return writer


def _announce(study: Study, console: Console, in_process: bool) -> int:
    """Print the size of the study; return the number of points."""
    expansion = study.expansion()
    total = sum(1 for _ in study.points(expansion))
    console.print(_expansion_line(study.name, total, expansion), highlight=False)
    for warning in study.unmatched(expansion):
        terminal.warn(warning)
    if in_process:
        console.print(UNCONTAINED, highlight=False)
    return total


def _runner(in_process: bool) -> Runner:
    """Return the runner of the steps; from now on SIGTERM interrupts like Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    if in_process:
        from dlas.processes.inline import Inline

        return Inline()
    from dlas.processes.server import Server

    return Server()


def check_parts(study: Study) -> None:
    """Verify every part of a study, before anything is written.

    Raises
    ------
    InputError
    """
    from dlas.errors import MissingData, MissingPackage
    from dlas.study.parts import HOMES

    for axis in HOMES:
        for choice in dict.fromkeys(study.axes[axis]):
            try:
                choice.make(axis).verify()
            except (MissingPackage, MissingData, ValueError, OSError) as error:
                raise InputError(f"{axis} {choice}: {error}") from None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _expansion_line(name: str, total: int, expansion: Expansion) -> str:
    """Return the line that accounts for every point of the cross product."""
    skipped = sum(expansion.skipped.values())
    line = f"{name}: {points(total)}"
    if skipped or expansion.merged:
        line += f" ({expansion.total} in the cross product, {skipped} skipped, {expansion.merged} merged)"
    return line


def _sweep(sweep: Sweep, console: Console) -> None:
    """Run a sweep and print how it ended."""
    from dlas.processes.outcome import FULL, DiskFull
    from dlas.processes.server import ServerDied

    out = sweep.results.folder
    try:
        summary = sweep.run()
    except KeyboardInterrupt:
        console.print(f"interrupted; run the same command again to go on. Rows so far: {out}")
        raise typer.Exit(130) from None
    except ServerDied as error:
        terminal.complain(f"{error}; run the same command again to go on")
        raise typer.Exit(1) from None
    except (DiskFull, OSError) as error:
        if isinstance(error, OSError) and error.errno not in FULL:
            raise
        terminal.complain(f"the disk is full ({error}); free some room and run the same command again")
        raise typer.Exit(1) from None
    if sweep.until == "measure":
        _print_summary(summary, out, console)


def _print_summary(summary: Summary, out: Path, console: Console) -> None:
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.written.items())) or "none"
    console.print(
        f"rows written: {statuses}; kept from before: {summary.kept}; measured: {summary.measured}. {out}",
        highlight=False,
    )
