"""Run a study, and say how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, TypeVar

import pandas as pd
from rich.console import Console

from dlas.bench.processes.interface import Runner
from dlas.bench.store import cache as caches
from dlas.errors import InputError, Unfinished, unknown
from dlas.face.console import terminal
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.preview import Preview, preview
from dlas.sweep.engine.sweep import RowWriter, Sweep
from dlas.sweep.engine.unsupported import check_training
from dlas.sweep.rows.files import check_appendable
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import FILE, STATUSES, Results, read_rows
from dlas.sweep.study.kept import check_keepable, keep
from dlas.sweep.study.point import Point
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import Expansion, Study, check_size

Writer = TypeVar("Writer", bound=RowWriter)
Progress = Literal["auto", "rich", "plain", "silent"]
Steps = Literal["spawned", "forked", "inline"]
"""Where the steps run: in children of a new interpreter, in children of this process, or in this process."""
UNCONTAINED = "all steps run in this process: no limit of time or memory holds, and a crash ends the sweep"


def run(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    jobs: int = 1,
    retry: str | Collection[str] = (),
    where: str | Sequence[str] = (),
    sample: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    anyway: bool = False,
    in_process: bool = False,
    progress: Progress = "auto",
) -> pd.DataFrame:
    """Run every point of a study that has no current row yet, and return the rows of all its points.

    It may be called from any thread.  Interrupted, it leaves complete rows; the same call goes on.

    Parameters
    ----------
    study : Study, mapping or path
        A :class:`dlas.Study`, a mapping with the keys of a study file, or the file's path.
    out : path
        Folder for ``results.jsonl`` and ``logs/``.
    jobs : int
        Network and build steps at a time.
    retry : str or collection of str
        Run rows of this status again: ``failed``, ``timeout``, ...
    where : str or collection of str
        Run the points that match: ``"algorithm=gemm"``, or ``"algorithm == 'gemm' and batch > 1"``.
    sample : int, optional
        Draw so many points at random: in place of the study's own number, or from its cross product.
    cache : path, optional
        Artifact cache; by default ``$DLAS_CACHE``, or else ``~/.cache/dlas``.
    cache_gib : float
        Size that the cache is kept within, GiB.
    keep_builds : bool
        Keep built libraries after their rows.
    anyway : bool
        Go on in a folder with rows of another machine.
    in_process : bool
        Run all steps in this process, without limits: for debuggers and profilers.
    progress : {"auto", "rich", "plain", "silent"}
        A line that is redrawn, lines of plain text, or nothing; ``auto`` redraws it on a terminal.

    Returns
    -------
    DataFrame
        As :func:`dlas.read` returns it.

    Raises
    ------
    InputError
        If the study or an argument is invalid; nothing has been written then.
    Unfinished
        If the disk is full, or the process that starts the steps was killed.
    """
    study = as_study(study, sample)
    run_into(
        study,
        Path(out),
        jobs=jobs,
        retry=[retry] if isinstance(retry, str) else retry,
        where=[where] if isinstance(where, str) else where,
        cache=None if cache is None else Path(cache),
        cache_gib=cache_gib,
        keep_builds=keep_builds,
        anyway=anyway,
        steps="inline" if in_process else "spawned",
        progress=progress,
    )
    frame = read(out)
    return frame[frame["id"].isin([point.id for point in study.points()])].reset_index(drop=True)


def run_into(
    study: Study,
    out: Path,
    *,
    where: Sequence[str] = (),
    points: Sequence[Point] | None = None,
    retry: Collection[str] = (),
    cache: Path | None = None,
    cache_gib: float = 20.0,
    anyway: bool = False,
    **options: Any,
) -> None:
    """Run a study into a folder; parameters as for :func:`run` and :func:`run_study`."""
    from dlas.sweep.engine.machines import check_machine

    check_retry(retry)
    check_appendable(out)
    check_keepable(out, study)
    for remark in check_machine(study, out, anyway):
        terminal.warn(remark)
    run_study(
        study,
        lambda: caches.Cache(cache or caches.default_root(), int(cache_gib * 2**30)),
        lambda _: appending(out, study),
        points=select_points(study, where) if where else points,
        retry=retry,
        **options,
    )


@contextmanager
def appending(out: Path, study: Study) -> Iterator[Results]:
    """Yield the writer of rows of a results folder, which keeps the study."""
    with Results(out) as results:
        keep(out, study)
        yield results


def preview_into(
    study: Study,
    out: Path | None,
    *,
    where: Sequence[str] = (),
    retry: Collection[str] = (),
    cache: Path | None = None,
) -> Preview:
    """Return what :func:`run_into` would do with the same parameters; a study need not have a folder yet.

    Raises
    ------
    InputError
        If the study is invalid.
    """
    check_size(study)
    check_parts(study)
    chosen = select_points(study, where)
    check_training(chosen)
    if out is not None:
        check_appendable(out)
    rows = list(read_rows(out)) if out is not None and (out / FILE).exists() else []
    return preview(study, chosen, rows, cache or caches.default_root(), retry)


def run_study(
    study: Study,
    cache: Callable[[], caches.Cache],
    results: Callable[[caches.Cache], AbstractContextManager[Writer]],
    *,
    jobs: int = 1,
    retry: Collection[str] = (),
    keep_builds: bool = False,
    until: str = "measure",
    points: Sequence[Point] | None = None,
    steps: Steps | Runner = "forked",
    progress: Progress = "auto",
    lines: bool = True,
) -> Writer:
    """Run a study, and return its results.

    Parameters
    ----------
    study : Study
    cache : callable
        Creates the cache after the study has been checked.
    results : callable
        Opens the writer of rows, a :class:`dlas.sweep.rows.results.Results`.
    jobs, retry, keep_builds, until, points
        As for :class:`dlas.sweep.engine.sweep.Sweep`.
    steps : {"spawned", "forked", "inline"} or Runner
        Where the steps run, or what runs those of several studies.  A process that has run kernels must
        not fork them: its children would lack the threads of its libraries, and hang.
    progress : {"auto", "rich", "plain", "silent"}
        As for :func:`run`.
    lines : bool
        Print a line for each row, and those before the first and after the last; False for a study that
        is a part of something larger, which then shows the bar alone.

    Raises
    ------
    InputError
        If the study is invalid; nothing has been written then.
    Unfinished, KeyboardInterrupt
        If the sweep did not finish.
    """
    check_jobs(jobs, steps)
    inline = runs_inline(steps)
    console = terminal.console(progress)
    check_study(study, points)
    from dlas.face.console.progress import SweepProgress

    said = console if lines else terminal.console("silent")
    total = announce(study, said, inline, points)
    axes = study.varying() or ["model"]
    shown = SweepProgress(total, console, axes, live=not inline, lines=lines)
    with runner_of(steps) as runner:
        store = cache()
        with results(store) as writer, shown:
            sweep = Sweep(
                study,
                writer,
                store,
                runner,
                shown,
                jobs=jobs,
                retry=retry,
                keep_builds=keep_builds,
                until=until,
                points=points,
            )
            summary = swept(sweep, said)
            if until == "measure":
                _print_summary(summary, writer.folder, said)
    return writer


def check_retry(retry: Collection[str]) -> None:
    """Refuse to run rows of a status again that there is not.

    Raises
    ------
    InputError
    """
    for status in retry:
        if status not in STATUSES:
            raise unknown("status", status, STATUSES)


def check_jobs(jobs: int, steps: Steps | Runner) -> None:
    """Refuse a number of steps at a time that cannot be.

    Raises
    ------
    InputError
    """
    if jobs < 1:
        raise InputError(f"jobs = {jobs}: at least one step runs at a time")
    if runs_inline(steps) and jobs > 1:
        raise InputError(f"in_process runs one step at a time, and jobs = {jobs} asks for more")


def check_study(study: Study, points: Sequence[Point] | None = None) -> None:
    """Refuse a study that is too large, has a part that cannot work, or trains on one image what needs two.

    Parameters
    ----------
    study : Study
    points : sequence of Point, optional
        Those to run, by default all.

    Raises
    ------
    InputError
    """
    check_size(study)
    check_parts(study)
    check_training(study.points() if points is None else points)


def announce(study: Study, console: Console, in_process: bool, chosen: Sequence[Point] | None = None) -> int:
    """Print the size of the study, and what to be warned of; return the number of points to run."""
    expansion = study.expansion()
    total = sum(1 for _ in study.points(expansion))
    line = _expansion_line(study, total, expansion)
    if chosen is not None:
        line, total = f"{line}; {counted(len(chosen))} chosen", len(chosen)
    console.print(line, highlight=False)
    for warning in study.unmatched(expansion):
        terminal.warn(warning)
    if in_process:
        console.print(UNCONTAINED, highlight=False)
    return total


def runs_inline(steps: Steps | Runner) -> bool:
    """Return whether steps run in this process: one at a time, and without limits."""
    return not steps.contained if isinstance(steps, Runner) else steps == "inline"


def runner_of(steps: Steps | Runner) -> AbstractContextManager[Runner]:
    """Return a context that gives the runner of the steps; one that was made before stays open."""
    if isinstance(steps, Runner):
        return nullcontext(steps)
    if steps == "inline":
        from dlas.bench.processes.inline import Inline

        return closing(Inline())
    from dlas.bench.processes.server import Server

    return closing(Server(spawned=steps == "spawned"))


def check_parts(study: Study) -> None:
    """Verify every part of a study, before anything is written.

    Raises
    ------
    InputError
    """
    from dlas.errors import MissingData, MissingPackage
    from dlas.stack import PART_AXES

    for axis in PART_AXES:
        for choice in dict.fromkeys(study.values(axis)):
            try:
                choice.make(axis).verify()
            except (MissingPackage, MissingData, ValueError, OSError) as error:
                raise InputError(f"{axis} {choice}: {error}") from None


def _expansion_line(study: Study, total: int, expansion: Expansion) -> str:
    """Return the line that accounts for every point of the cross product, or of the draws."""
    skipped = sum(expansion.skipped.values())
    line = f"{study.name}: {counted(total)}"
    if study.sample:
        drawn = [axis for axis in study.varying() if axis in study.sample.axes]
        line += f" of {study.sample.points:,} draws of {', '.join(drawn or study.sample.axes)}"
    if skipped or expansion.merged:
        of = "drawn" if study.sample else "in the cross product"
        line += f" ({expansion.total} {of}, {skipped} skipped, {expansion.merged} merged)"
    return line


def swept(sweep: Sweep, console: Console, again: str = "") -> Summary:
    """Run a sweep and return how it ended; print what goes on with it where it was interrupted.

    Parameters
    ----------
    sweep : Sweep
    console : Console
    again : str
        What goes on after an interruption; by default ``dlas run`` with the folder.

    Raises
    ------
    Unfinished, KeyboardInterrupt
        If the sweep did not finish.
    """
    from dlas.bench.processes.outcome import FULL, DiskFull
    from dlas.bench.processes.server import ServerDied

    out = sweep.results.folder
    try:
        return sweep.run()
    except KeyboardInterrupt:
        folder = f"`dlas run {out}`" if sweep.until == "measure" else "the same command"
        console.print(f"interrupted; {again or folder} goes on. Rows so far: {out}", highlight=False)
        raise
    except ServerDied as error:
        raise Unfinished(f"{error}; run the study again to go on") from None
    except (DiskFull, OSError) as error:
        if isinstance(error, OSError) and error.errno not in FULL:
            raise
        raise Unfinished(f"the disk is full ({error}); free some room and run the study again") from None


def _print_summary(summary: Summary, out: Path, console: Console) -> None:
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(summary.written.items())) or "none"
    console.print(
        f"rows written: {statuses}; kept from before: {summary.kept}; measured: {summary.measured}. {out}",
        highlight=False,
    )
