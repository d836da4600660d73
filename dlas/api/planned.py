"""The points of a study with their networks' operators, or kernels: made, but neither built nor measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dlas.api.running import Progress, Steps, run_study
from dlas.engine.collected import CollectedRows
from dlas.engine.kernels import program_kernels
from dlas.engine.operators import network_operators
from dlas.errors import InputError, Unsupported
from dlas.networks.operators import Operators
from dlas.rows.predictions import PREDICTED
from dlas.rows.results import Row
from dlas.stack import Layer
from dlas.store import cache as caches
from dlas.study.point import Choice, Point
from dlas.study.reading import as_study
from dlas.study.selecting import select_points
from dlas.study.study import check_size

if TYPE_CHECKING:
    from dlas.study.study import Study


def planned(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    *,
    where: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    steps: Steps = "spawned",
    progress: Progress = "auto",
) -> tuple[list[Row], list[Operators], Counter[str]]:
    """Return the points of a study whose networks could be made.

    Parameters
    ----------
    study, where, cache, jobs, steps, progress
        As for :func:`dlas.run`.

    Returns
    -------
    rows : list of Row
        Their parts and devices; nothing is measured.
    networks : list of Operators
        What is known of each point's network.
    failed : Counter
        Numbers of points whose networks could not be made, by reason.

    Raises
    ------
    InputError
        If the study is invalid, or no network could be made.
    """
    root, collected = _made(study, "network", where, cache, jobs, steps, progress)
    rows, networks, failed = [], [], Counter[str]()
    by_key: dict[str, Operators] = {}
    planned_row = _Planned()
    for row in collected:
        key = row.artifacts.get("network", "")
        if row.status == "ok" and key not in by_key:
            by_key[key] = network_operators(root, key)
        if row.status != "ok" or not by_key.get(key):
            failed[row.reason or "the operators of its network are not known"] += 1
            continue
        rows.append(planned_row(row))
        networks.append(by_key[key])
    if not rows:
        raise InputError(f"no network of the study can be made: {next(iter(failed))}")
    return rows, networks, failed


def planned_kernels(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    *,
    where: Sequence[str] = (),
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    steps: Steps = "spawned",
    progress: Progress = "auto",
) -> tuple[list[Row], list[list[Layer]], Counter[str]]:
    """Return the points of a study with the kernels that their programs would run, which are not built.

    Parameters
    ----------
    study, where, cache, jobs, steps, progress
        As for :func:`dlas.run`.

    Returns
    -------
    rows : list of Row
        Their parts and devices; nothing is measured.
    kernels : list of list of Layer
        Of each point, in the order in which they run, without times.
    failed : Counter
        Numbers of points whose networks could not be made, or whose kernels are not known, by reason.

    Raises
    ------
    InputError
        If the study is invalid, or the kernels of no point are known.
    """
    root, collected = _made(study, "kernels", where, cache, jobs, steps, progress)
    rows, kernels, failed = [], [], Counter[str]()
    planned_row = _Planned()
    for row in collected:
        if row.status != "ok":
            failed[row.reason or row.status] += 1
            continue
        try:
            told = program_kernels(root, cast(Mapping[str, str], row.artifacts), Point.of(asdict(row)))
        except Unsupported as error:
            failed[str(error)] += 1
            continue
        rows.append(planned_row(row))
        kernels.append(told)
    if not rows:
        raise InputError(f"the kernels of no point are known: {next(iter(failed))}")
    return rows, kernels, failed


def _made(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    until: str,
    where: Sequence[str],
    cache: str | os.PathLike[str] | None,
    jobs: int,
    steps: Steps,
    progress: Progress,
) -> tuple[caches.Cache, Sequence[Row]]:
    """Run the steps of a study's points until one of them; return the cache and the points' rows."""
    chosen = as_study(study)
    check_size(chosen)
    root = caches.Cache(Path(cache) if cache is not None else caches.default_root())
    collected = run_study(
        chosen,
        lambda: root,
        lambda store: nullcontext(CollectedRows(store.workspace("predict"))),
        jobs=jobs,
        until=until,
        points=select_points(chosen, where) if where else None,
        steps=steps,
        progress=progress,
    )
    return root, collected.rows


class _Planned:
    """Makes rows of points that were planned, and describes each device once."""

    def __init__(self) -> None:
        self._devices: dict[Choice, Any] = {}

    def __call__(self, row: Row) -> Row:
        hardware = Point.of(asdict(row)).hardware
        if hardware not in self._devices:
            self._devices[hardware] = hardware.make("hardware").describe()
        return replace(row, status=PREDICTED, device=self._devices[hardware])
