"""Details that the table of rows omits: layers, curves of tuning and compression, machine and software."""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.errors import DamagedRows
from dlas.sweep.rows.labels import flat
from dlas.sweep.rows.layer_times import profile, timed_layers
from dlas.sweep.rows.operators import class_of
from dlas.sweep.rows.results import CURVES, Row, read_rows
from dlas.sweep.rows.trajectories import Trajectories, Trajectory, on_curve


@dataclass(frozen=True, slots=True)  # a report has hundreds of thousands
class LayerTime:
    """One layer's time, without the profiler's cost."""

    name: str
    algorithm: str
    """What computes it."""
    latency_s: float
    """In training, of its forward pass."""
    operator_class: str = ""
    """As in :data:`dlas.sweep.rows.operators.CLASSES`."""
    backward_s: float = 0.0
    """In training, of its backward pass."""


@dataclass(frozen=True)
class SearchCurve:
    """The best time found in a workload's search, over its trials."""

    layers: tuple[str, ...]
    """The layers that it computes."""
    trials: int
    """Number of trials."""
    best: list[tuple[int, float]]
    """Each improvement: the number of trials so far, and the seconds of a call."""


@dataclass
class Details:
    """Details of the points of a frame."""

    layers: dict[int, list[LayerTime]] = field(default_factory=dict)
    """By line of the frame, in the network's order; only lines with times of layers."""
    profiled_s: dict[int, float] = field(default_factory=dict)
    """By line, the sum of the layers as profiled, with the profiler's cost."""
    curves: dict[int, list[SearchCurve]] = field(default_factory=dict)
    """By line of the frame, for points that were tuned."""
    unreadable: int = 0
    """Number of damaged files of curves."""
    trajectories: list[Trajectory] = field(default_factory=list)
    """The compression curves of the networks, each training once."""
    facts: dict[str, Counter[str]] = field(default_factory=dict)
    """Machines and software: by the name of a fact, the number of rows with each value."""


@dataclass(frozen=True)
class RowDetails:
    """What a row has that the table of rows omits."""

    layers: list[LayerTime]
    """Empty where no layer was timed."""
    profiled_s: float
    """Their sum as profiled."""
    facts: tuple[tuple[str, str], ...]
    """Names and values of its software and its machine."""
    step: Row | None
    """The row without its lists and its machine; None where it is on no compression curve."""

    @classmethod
    def of(cls, row: Row) -> RowDetails:
        """Return the details of a row."""
        profiled = profile(row)
        return cls(
            layers=list(_layers(row)) if profiled else [],
            profiled_s=profiled.profiled_s if profiled else 0.0,
            facts=tuple(_facts(row)),
            step=_step(row) if on_curve(row) else None,
        )


def _step(row: Row) -> Row:
    """Return a row without what no compression curve shows."""
    return replace(row, layers=[], edges=[], latency_s=[], sentinel_s=[], device={}, environment={})


def read_details(points: pd.DataFrame) -> Details:
    """Return the details of points, from the rows of their folders.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.repeats.merge_repeats` returned, numbered from 0.  A layer's time is the
        median of those of the point's runs; its search is that of the latest run.
    """
    places = zip(points["folders"], points["id"], strict=True)
    lines = {(folder, row): line for line, (own, row) in enumerate(places) for folder in own}
    latest = points["folder"].tolist()
    networks = list(zip(points["dataset"].astype(str), points["model"].astype(str), strict=True))
    details, trajectories = Details(), Trajectories()
    runs: dict[int, list[RowDetails]] = {}
    told: Counter[tuple[tuple[str, str], ...]] = Counter()
    for folder, row in _rows_at(lines):
        line, own = lines[folder, row.id], RowDetails.of(row)
        if own.layers:
            runs.setdefault(line, []).append(own)
        if own.step is not None:
            trajectories.add(own.step, line, *networks[line])
        told[own.facts] += 1
        if folder == latest[line]:
            _add_curves(details, line, Path(folder) / CURVES / f"{row.id}.json")
    for facts, count in told.items():
        for name, value in facts:
            details.facts.setdefault(name, Counter())[value] += count
    details.layers = {line: _median_times([each.layers for each in own]) for line, own in runs.items()}
    details.profiled_s = {
        line: statistics.median(each.profiled_s for each in own) for line, own in runs.items()
    }
    details.trajectories = trajectories.trainings
    return details


def _rows_at(places: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of folders and ids, each after its folder; the damaged ones are known already."""
    ids: dict[str, set[str]] = {}
    for folder, row_id in places:
        ids.setdefault(folder, set()).add(row_id)
    for folder, own in ids.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedRows)
            for row in read_rows(Path(folder), own):
                yield folder, row


def _median_times(runs: Sequence[Sequence[LayerTime]]) -> list[LayerTime]:
    """Return the layers of the last run, each with the median of its times in all runs."""
    times: dict[tuple[str, str], list[float]] = {}
    for layer in (layer for run in runs for layer in run):
        times.setdefault((layer.name, layer.algorithm), []).append(layer.latency_s)
    return [
        replace(layer, latency_s=statistics.median(times[layer.name, layer.algorithm])) for layer in runs[-1]
    ]


def _add_curves(details: Details, line: int, path: Path) -> None:
    """Add the search curves of a row from their file, if there is one."""
    if not path.is_file():
        return
    try:
        curves = [_curve(content) for content in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, KeyError):
        details.unreadable += 1
        return
    details.curves[line] = [curve for curve in curves if curve.best]


def _curve(content: Mapping[str, Any]) -> SearchCurve:
    best = [(int(trials), float(latency_s)) for trials, _, latency_s in content["best"]]
    last = best[-1][0] if best else 0
    return SearchCurve(tuple(map(str, content["layers"])), max(int(content.get("trials") or 0), last), best)


def _layers(row: Row) -> Iterator[LayerTime]:
    for layer, latency_s in timed_layers(row):
        algorithm = layer.get("algorithm") or "other"
        backward_s = layer.get("backward_s")
        yield LayerTime(
            sys.intern(str(layer.get("name"))),
            sys.intern(str(algorithm)),
            latency_s,
            class_of(layer),
            float(backward_s) if isinstance(backward_s, int | float) else 0.0,
        )


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the software and the machine of a row."""
    for name, value in (*flat(row.environment), *flat(row.device, "device")):
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
