"""The commands that measure studies: ``dlas run``, ``explore``, ``search``, ``blocks`` and ``status``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlas.errors import InputError
from dlas.face.cli import commands
from dlas.face.cli.commands import Call, like
from dlas.face.console import terminal

if TYPE_CHECKING:
    from dlas.sweep.engine.preview import Preview
    from dlas.sweep.study.study import Study

StudyFile = Annotated[Path, typer.Argument(help="A study file.")]


@like("run", "study")
def run(
    call: Call,
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY | FOLDER",
            help="A study file, the name of one that comes along, or the results folder of one.",
        ),
    ],
    sample: int | None,
    in_process: bool,
    out: Annotated[Path | None, typer.Option(help="Folder for results.jsonl and logs/.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, what is cached, how long and how large.")
    ] = False,
) -> None:
    """Run every point of a study that has no current row yet; resume where it was.

    The exit code is 1 if points failed and none has a result.
    """
    from dlas.face.api import studies
    from dlas.face.console import preview
    from dlas.sweep.study.kept import kept_study
    from dlas.sweep.study.shipped import shipped
    from dlas.sweep.study.study import Study

    folder = out or (study if study.is_dir() else None)
    if folder is None and not dry_run and shipped(study).exists():
        raise InputError("give `out=`, the folder for the rows")
    chosen = Study.read(kept_study(study) if study.is_dir() else study, sample)
    if dry_run:
        found = call.of(_preview, study=chosen, out=folder)
        terminal.console().print(preview.render(found, chosen.varying()), highlight=False)
        return
    assert folder is not None  # what does not exist was refused when it was read
    summary = call.of(
        studies.run_into, study=chosen, out=folder, steps="inline" if in_process else commands.STEPS
    )
    _print_next(folder, chosen)
    if summary.all_failed:
        raise typer.Exit(1)


@like("explore", "study", goal="--for")
def explore(call: Call, study: StudyFile, out: Path, goal: str, share: float | None) -> None:
    """Measure a share of a study's points, chosen well, and predict the latencies of the others.

    `--for fastest` races algorithms and compilers of each network instead.
    """
    terminal.show(call().shown)
    terminal.say(f"written: {out / 'predictions.jsonl'}")
    from dlas.prediction.adaptive.share.strategy import USUAL_SHARES

    twice = 2 * (USUAL_SHARES[goal] if share is None else share)
    more = f"\n      dlas explore {study} --for {goal} --share {twice:g} --out {out}" if twice <= 1 else ""
    terminal.say(f"next: dlas table {out}\n      dlas report {out}{more}")


@like("search", "study")
def search(
    call: Call,
    study: Annotated[Path, typer.Argument(help="A study file that draws; one value on every other axis.")],
    out: Path,
    estimator: Annotated[
        list[str],
        typer.Option(
            metavar="FOLDER | measure",
            help="What tells costs: a predictor, a table, or `measure`; one a bound.",
        ),
    ],
    maximise: Annotated[
        str,
        typer.Option(
            metavar="FOLDER | FILE.pth | accuracy",
            help="What tells scores: a predictor, weights from 128 values, or `accuracy` of each network.",
        ),
    ],
) -> None:
    """Search what a study draws for the best score within a bound, and measure the winners again."""
    # Predictors may have run kernels here before networks are made.
    terminal.show(call(steps="spawned", say=terminal.say).shown)
    terminal.say(f"written: {out / 'search.json'}")


@like("blocks", "to", to="FOLDER")
def blocks(call: Call) -> None:
    """Measure each block of Once-for-All's MobileNetV3 once, and write tables of their latencies."""
    terminal.show(call(steps=commands.STEPS, say=terminal.say).shown)


def status(folder: Annotated[Path, typer.Argument(help="A folder that `dlas run --out` wrote.")]) -> None:
    """Say how many points are done, how they ended, what is left and what happened last."""
    with terminal.working(f"counting the points of {folder}"):
        from dlas.face.console.status import status as render

        told = render(folder)
    terminal.console().print(told, highlight=False, soft_wrap=True)


def _print_next(folder: Path, study: Study) -> None:
    """Print the commands that make sense after a sweep."""
    from dlas.sweep.engine.point_run import FAILED
    from dlas.sweep.rows.labels import short_id
    from dlas.sweep.rows.results import STATUSES, read_rows

    every = list(read_rows(folder))
    first = {row.status: row.id for row in reversed(every)}
    if unstable := sum(row.status == "unstable" for row in every):
        remedy = f"`dlas doctor` says why, `dlas run {folder} --retry unstable` measures again"
        terminal.say(f"{unstable:,} unstable, whose times are no result: {remedy}")
    bad = next((first[status] for status in STATUSES if status in FAILED and status in first), None)
    commands = [f"dlas table {folder}"]
    if "ok" in first and not {"dataset", "model", "hardware", "batch", "task"}.intersection(study.varying()):
        commands.append(f"dlas show {folder} --fastest")
    drawn = study.sample.axes if study.sample else ()
    compared = [axis for axis in study.varying() if axis not in (*drawn, "task") and "ok" in first]
    commands += [f"dlas compare {folder} --axis {axis}" for axis in compared[-1:]]
    commands += [f"dlas report {folder}" + (" --where task=training" if "task" in study.varying() else "")]
    shown = [f"dlas show {folder} {short_id(bad)}"] if bad else []
    commands = [*commands, *shown] if "ok" in first else [*shown, *commands]
    terminal.console().print(
        "next: " + "\n      ".join(commands), highlight=False, markup=False, soft_wrap=True
    )


def _preview(
    study: Study,
    out: Path | None,
    *,
    where: Sequence[str] = (),
    shard: str | None = None,
    retry: str | Collection[str] = (),
    cache: Path | None = None,
) -> Preview:
    """Return what ``dlas run`` would do with the same parameters; a study need not have a folder yet.

    Raises
    ------
    InputError
        If the study is invalid.
    """
    from dlas.face.console.progress import ConsoleDisplay
    from dlas.sweep.engine.session import Session
    from dlas.sweep.study.selecting import select_points

    study.check_size()
    display = ConsoleDisplay(terminal.console(stderr=True), lines=False)
    points = select_points(study, where, shard) if where or shard else None
    return Session.open(cache=cache, retry=retry, display=display).preview(study, out, points)
