"""Run a study, and say how it ended."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.face.console.progress import ConsoleDisplay, ProgressKind
from dlas.sweep.engine.preview import Preview
from dlas.sweep.engine.session import Session, Steps
from dlas.sweep.rows.frame import read
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import Study, check_size


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
    progress: ProgressKind = "auto",
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
    chosen, patterns = as_study(study, sample), [where] if isinstance(where, str) else where
    run_into(
        chosen,
        Path(out),
        where=patterns,
        jobs=jobs,
        retry=retry,
        cache=None if cache is None else Path(cache),
        cache_gib=cache_gib,
        keep_builds=keep_builds,
        anyway=anyway,
        steps="inline" if in_process else "spawned",
        progress=progress,
    )
    frame = read(out)
    return frame[frame["id"].isin([point.id for point in chosen.points()])].reset_index(drop=True)


def run_into(
    study: Study,
    out: Path,
    *,
    where: Sequence[str] = (),
    jobs: int = 1,
    retry: str | Collection[str] = (),
    cache: Path | None = None,
    cache_gib: float = 20.0,
    keep_builds: bool = False,
    anyway: bool = False,
    steps: Steps = "spawned",
    progress: ProgressKind = "auto",
) -> None:
    """Run a study into a folder; parameters as for :func:`run` and :meth:`Session.open`."""
    with Session.open(
        steps,
        cache=cache,
        cache_gib=cache_gib,
        jobs=jobs,
        retry=retry,
        keep_builds=keep_builds,
        display=ConsoleDisplay.of(progress),
    ) as session:
        points = select_points(study, where) if where else None
        session.check(study, out, points, anyway=anyway)
        session.run(study, out, points)


def preview_into(
    study: Study,
    out: Path | None,
    *,
    where: Sequence[str] = (),
    retry: str | Collection[str] = (),
    cache: Path | None = None,
) -> Preview:
    """Return what :func:`run_into` would do with the same parameters; a study need not have a folder yet.

    Raises
    ------
    InputError
        If the study is invalid.
    """
    check_size(study)
    return Session.open(cache=cache, retry=retry).preview(study, out, select_points(study, where))
