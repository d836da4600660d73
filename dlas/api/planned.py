"""The points of a study with their networks' operators: made, but neither built nor measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlas.api.running import Progress, Steps, run_study
from dlas.engine.collected import CollectedRows
from dlas.engine.operators import network_operators
from dlas.errors import InputError
from dlas.networks.operators import Operators
from dlas.rows.predictions import PREDICTED
from dlas.rows.results import Row
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
    chosen = as_study(study)
    check_size(chosen)
    root = caches.Cache(Path(cache) if cache is not None else caches.default_root())
    collected = run_study(
        chosen,
        lambda: root,
        lambda store: nullcontext(CollectedRows(store.workspace("predict"))),
        jobs=jobs,
        until="network",
        points=select_points(chosen, where) if where else None,
        steps=steps,
        progress=progress,
    )
    rows, networks, failed = [], [], Counter[str]()
    by_key: dict[str, Operators] = {}
    devices: dict[Choice, Any] = {}
    for row in collected.rows:
        key = row.artifacts.get("network", "")
        if row.status == "ok" and key not in by_key:
            by_key[key] = network_operators(root, key)
        if row.status != "ok" or not by_key.get(key):
            failed[row.reason or "the operators of its network are not known"] += 1
            continue
        hardware = Point.of(asdict(row)).hardware
        if hardware not in devices:
            devices[hardware] = hardware.make("hardware").describe()
        rows.append(replace(row, status=PREDICTED, device=devices[hardware]))
        networks.append(by_key[key])
    if not rows:
        raise InputError(f"no network of the study can be made: {next(iter(failed))}")
    return rows, networks, failed
