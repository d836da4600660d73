"""The commands that run studies: ``dlas run``, ``dlas explore`` and ``dlas status``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlas.errors import InputError
from dlas.face.cli import shared_options
from dlas.face.console import terminal

if TYPE_CHECKING:
    from dlas.sweep.study.study import Study


def run(
    study: Annotated[
        Path,
        typer.Argument(metavar="STUDY | FOLDER", help="A study file, or the results folder of one."),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for results.jsonl and logs/.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="Run the points that match: algorithm=gemm, \"batch > 1 and model != 'vgg16'\".",
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Draw N points at random, from \\[sample] axes or from the cross product."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, what is cached, how long and how large.")
    ] = False,
    jobs: shared_options.Jobs = 1,
    retry: shared_options.Retry = None,
    cache: shared_options.Cache = None,
    cache_gib: shared_options.CacheGib = 20.0,
    keep_builds: shared_options.KeepBuilds = False,
    in_process: shared_options.InProcess = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on in a folder with rows of another machine.")
    ] = False,
) -> None:
    """Run every point of a study that has no current row yet; resume where it was."""
    from dlas.face.api import studies
    from dlas.face.console import preview
    from dlas.sweep.study.kept import kept_study
    from dlas.sweep.study.reading import read_study

    folder = out or (study if study.is_dir() else None)
    chosen = read_study(kept_study(study) if study.is_dir() else study, sample)
    if dry_run:
        found = studies.preview_into(chosen, folder, where=where or (), retry=retry or (), cache=cache)
        terminal.console().print(preview.render(found, chosen.varying()), highlight=False)
        return
    if folder is None:
        raise InputError("give --out, the folder for the rows")
    studies.run_into(
        chosen,
        folder,
        where=where or (),
        jobs=jobs,
        retry=retry or (),
        cache=cache,
        cache_gib=cache_gib,
        keep_builds=keep_builds,
        anyway=anyway,
        steps="inline" if in_process else "forked",
    )
    _print_next(folder, chosen)


def explore(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[Path, typer.Option(help="Folder for results.jsonl, predictions.jsonl and logs/.")],
    share: Annotated[
        float, typer.Option(help="Of the points, those to measure; a larger one extends a smaller one.")
    ] = 0.1,
    jobs: shared_options.Jobs = 1,
    retry: shared_options.Retry = None,
    cache: shared_options.Cache = None,
    cache_gib: shared_options.CacheGib = 20.0,
    keep_builds: shared_options.KeepBuilds = False,
    in_process: shared_options.InProcess = False,
) -> None:
    """Measure a share of a study's points, chosen well, and predict the latencies of the others."""
    from dlas.face.api import studies

    view = studies.explore(
        study,
        out,
        share=share,
        jobs=jobs,
        retry=retry or (),
        cache=cache,
        cache_gib=cache_gib,
        keep_builds=keep_builds,
        in_process=in_process,
    )
    terminal.show(view.shown)
    terminal.say(f"written: {out / 'predictions.jsonl'}")
    more = f"\n      dlas explore {study} --share {2 * share:g} --out {out}" if 2 * share <= 1 else ""
    terminal.say(f"next: dlas table {out}\n      dlas report {out}{more}")


def status(folder: Annotated[Path, typer.Argument(help="A folder that `dlas run --out` wrote.")]) -> None:
    """Say how many points are done, how they ended, what is left and what happened last."""
    from dlas.face.console.status import status as render

    terminal.console().print(render(folder), highlight=False, soft_wrap=True)


def _print_next(folder: Path, study: Study) -> None:
    """Print the commands that make sense after a sweep."""
    from dlas.sweep.rows.labels import short_id
    from dlas.sweep.rows.results import read_rows

    bad = next((row.id for row in read_rows(folder) if row.status not in ("ok", "unsupported")), None)
    commands = [f"dlas table {folder}"]
    if not {"dataset", "model", "hardware", "batch", "task"}.intersection(study.varying()):
        commands.append(f"dlas show {folder} --fastest")
    drawn = study.sample.axes if study.sample else ()
    compared = [axis for axis in study.varying() if axis not in (*drawn, "task")]
    commands += [f"dlas compare {folder} --axis {axis}" for axis in compared[-1:]]
    commands += [f"dlas report {folder}" + (" --where task=training" if "task" in study.varying() else "")]
    commands += [f"dlas show {folder} {short_id(bad)}"] if bad else []
    terminal.console().print(
        "next: " + "\n      ".join(commands), highlight=False, markup=False, soft_wrap=True
    )
