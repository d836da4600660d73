"""The points of a study with their networks' operators and kernels: made, but neither built nor measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlas.bench.processes.interface import Runner
from dlas.bench.store import cache as caches
from dlas.errors import InputError, PointError
from dlas.face.api.running import Progress, Steps, run_study
from dlas.networks.operators import Operators
from dlas.stack import Layer
from dlas.sweep.engine.collected import CollectedRows
from dlas.sweep.engine.kernels import program_kernels
from dlas.sweep.engine.operators import network_operators
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.reading import as_study
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import check_size

if TYPE_CHECKING:
    from dlas.sweep.study.study import Study


@dataclass
class Planned:
    """The points of a study whose networks could be made.

    Parameters
    ----------
    rows : list of Row
        Their parts and devices; nothing is measured.
    networks : list of Operators
        What is known of each point's network.
    kernels : list of list of Layer
        What each point's program computes; empty where nobody asked.
    failed : Counter
        Numbers of points whose networks could not be made or whose kernels are not known, by reason.
    """

    rows: list[Row] = field(default_factory=list)
    networks: list[Operators] = field(default_factory=list)
    kernels: list[list[Layer]] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)


def planned(
    study: Study | Mapping[str, Any] | str | os.PathLike[str],
    *,
    where: Sequence[str] = (),
    points: Sequence[Point] | None = None,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    steps: Steps | Runner = "spawned",
    progress: Progress = "auto",
    lines: bool = True,
    kernels: bool = False,
    refuse: bool = True,
) -> Planned:
    """Return the points of a study whose networks could be made.

    Parameters
    ----------
    study, where, cache, jobs, progress
        As for :func:`dlas.run`.
    points, steps, lines
        As for :func:`dlas.face.api.running.run_study`.
    kernels : bool
        Whether to tell the kernels of programs too, for which some compilers lower the networks.
    refuse : bool
        Whether to refuse a study of which no network could be made.

    Raises
    ------
    InputError
        If the study is invalid, or no network could be made, unless that is not to be refused.
    """
    chosen = as_study(study)
    check_size(chosen)
    root = caches.Cache(Path(cache) if cache is not None else caches.default_root())
    collected = run_study(
        chosen,
        lambda: root,
        lambda store: nullcontext(CollectedRows(store.workspace("predict"))),
        jobs=jobs,
        until="kernels" if kernels else "network",
        points=select_points(chosen, where) if where else points,
        steps=steps,
        progress=progress,
        lines=lines,
    )
    found = Planned()
    by_key: dict[str, Operators] = {}
    devices: dict[Choice, Any] = {}
    for row in collected.rows:
        key, point = row.artifacts.get("network", ""), Point.of(asdict(row))
        try:
            if row.status == "ok" and key not in by_key:
                by_key[key] = network_operators(root, key)
            if row.status != "ok" or not by_key.get(key):
                found.failed[row.reason or "the operators of its network are not known"] += 1
                continue
            own = program_kernels(root, row.artifacts, point, by_key[key]) if kernels else []
        except PointError as error:  # nobody can tell its kernels, or an artifact is damaged
            found.failed[str(error)] += 1
            continue
        if point.hardware not in devices:
            devices[point.hardware] = point.hardware.make("hardware").describe()
        found.rows.append(replace(row, status=PREDICTED, device=devices[point.hardware]))
        found.networks.append(by_key[key])
        found.kernels.append(own)
    if refuse and not found.rows:
        raise InputError(f"no point of the study can be predicted: {next(iter(found.failed))}")
    return found
