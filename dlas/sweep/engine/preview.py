"""What a sweep would do: the points without a row, the steps that the cache lacks, their time and disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from dlas.bench.store.cache import holds
from dlas.sweep.engine.checks import unsupported
from dlas.sweep.engine.planning import Plan, Planner, Step
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

SIMILAR: dict[str, tuple[tuple[str, ...], ...]] = {
    "network": (("dataset", "model", "compression"), ("dataset", "model")),
    "tune": (("model", "algorithm", "compiler"), ("model", "compiler")),
    "build": (("model", "algorithm", "compiler"), ("model", "compiler name"), ("compiler name",)),
    "memory": (("task", "model", "compiler"), ("task", "model"), ()),
    "check": (("task", "model", "compiler"), ("task", "model"), ()),
    "measure": (("task", "model", "algorithm", "compiler"), ("task", "model"), ()),
}
"""For each step, what an earlier row that tells its time is equal in: as much as there is such a row."""


@dataclass
class Preview:
    """What a sweep would do."""

    current: Counter[str] = field(default_factory=Counter)
    """Points that have a row, by its status."""
    unsupported: int = 0
    """Points whose device cannot be used, or whose compiler does not train: they get a row without a step."""
    to_run: list[tuple[Point, tuple[str, ...]]] = field(default_factory=list)
    """Points without a current row, and the steps that they need."""
    needed: Counter[str] = field(default_factory=Counter)
    cached: Counter[str] = field(default_factory=Counter)
    """Steps to do, and steps whose artifact is in the cache, by name; shared ones count once."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Estimated time of the steps to do, by name, where earlier rows tell it."""
    unknown: Counter[str] = field(default_factory=Counter)
    """Steps to do that no earlier row is like."""
    network_bytes: int = 0
    """Disk that the networks to be made will take in the cache, as far as earlier rows tell."""
    row_bytes: float | None = None
    """Disk that a row takes, from the folder's own; None without any."""


def preview(
    study: Study, points: Iterable[Point], rows: Sequence[Row], root: Path, retry: Collection[str] = ()
) -> Preview:
    """Return what a sweep would do; nothing is written.

    Parameters
    ----------
    points : iterable of Point
        Those of the study to run.
    rows : sequence of Row
        The folder's rows so far: they tell which points are done, and how long steps take.
    root : Path
        The cache folder, which need not exist.
    retry : collection of str
        Statuses whose rows are run again.
    """
    planner, history = Planner(study.measure, root), History(rows)
    existing = {row.id: row for row in rows}
    found = Preview(row_bytes=sum(len(row.line()) for row in rows) / len(rows) if rows else None)
    seen: set[tuple[str, str]] = set()
    for point in points:
        plan = planner.plan(point)
        row = existing.get(point.id)
        if row is not None and row.stands(plan.key, retry):
            found.current[row.status] += 1
        elif unsupported(point):
            found.unsupported += 1
        else:
            found.to_run.append((point, _needed(found, history, point, plan, root, seen)))
    return found


def _needed(
    found: Preview, history: History, point: Point, plan: Plan, root: Path, seen: set[tuple[str, str]]
) -> tuple[str, ...]:
    """Count a point's steps, and return the names of those to do; other points' are counted already."""
    todo: list[str] = []
    networks = sum(step.name == "network" for step in plan.steps)
    for step in (*plan.steps, plan.measure):
        held = step.kind is not None and holds(root, step.kind, step.key)
        if not held:
            todo.append(step.name)
        shared = step.kind is not None and (step.kind, step.key) in seen
        seen.add((str(step.kind), step.key))
        if shared:
            continue
        (found.cached if held else found.needed)[step.name] += 1
        if not held:
            _estimate(found, history, point, step, networks)
    return tuple(dict.fromkeys(todo))


def _estimate(found: Preview, history: History, point: Point, step: Step, networks: int) -> None:
    """Add a step's time and disk to what was found."""
    content = {**point.content(), "task": point.task}
    seconds = history.seconds(step.name, content)
    if seconds is None:
        found.unknown[step.name] += 1
        return
    share = 1 / networks if step.name == "network" else 1
    found.seconds[step.name] = found.seconds.get(step.name, 0.0) + seconds * share
    if step.name == "network":
        found.network_bytes += history.network_bytes(content) or 0


class History:
    """Rows that tell how long steps take, and how large networks are.

    Parameters
    ----------
    rows : sequence of Row
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [(row, row.__dict__) for row in rows]

    def seconds(self, step: str, content: Mapping[str, Any]) -> float | None:
        """Return the median time of a step in the rows that are most like a point; None without any."""
        for axes in SIMILAR[step]:
            times = [
                time
                for row, values in self._rows
                if (time := _seconds(row, step)) and _alike(values, content, axes)
            ]
            if times:
                return median(times)
        return None

    def network_bytes(self, content: Mapping[str, Any]) -> int | None:
        """Return the size of a point's network, or of a network of its model; None where no row tells it."""
        for axes in SIMILAR["network"]:
            for row, values in self._rows:
                if row.model_bytes and _alike(values, content, axes):
                    return row.model_bytes
        return None


def _alike(row: Mapping[str, Any], content: Mapping[str, Any], axes: Iterable[str]) -> bool:
    """Return whether a row and a point are equal in some axes, or in the names of their parts."""
    pairs = [(row[axis], content[axis], name) for axis, _, name in (text.partition(" ") for text in axes)]
    return all(one["name"] == other["name"] if name else one == other for one, other, name in pairs)


def _seconds(row: Row, step: str) -> float:
    """Return how long a step of a row took, also where its artifact was made for another row."""
    worked: Mapping[str, Any] = row.seconds or {}
    made: Mapping[str, Any] = row.cached or {}
    return float(worked.get(step) or 0) + float(made.get(step) or 0)
