"""What a sweep would do: the points without a row, the steps that the cache lacks, their time and disk."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from dlas.bench.store.cache import held_keys
from dlas.stack import MeasureSettings
from dlas.stack.types import Say
from dlas.sweep.engine.planning import Plan, Planner, Step
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Point

SHOWN_EVERY = 256
"""Points that are planned between two lines."""
Axes = tuple[str, ...]
Number = TypeVar("Number", int, float)
SIMILAR: dict[str, tuple[Axes, ...]] = {
    "network": (("dataset", "model", "compression"), ("dataset", "model")),
    "kernels": (("model", "compiler"), ("model",), ()),
    "tune": (("model", "algorithm", "compiler"), ("model", "compiler")),
    "build": (("model", "algorithm", "compiler"), ("model", "compiler name"), ("compiler name",)),
    "memory": (("task", "model", "compiler"), ("task", "model"), ()),
    "check": (("task", "model", "compiler"), ("task", "model"), ()),
    "count": (("model", "algorithm", "compiler"), ("model",), ()),
    "measure": (("task", "model", "algorithm", "compiler"), ("task", "model"), ()),
}
"""For each step, what an earlier row that tells its time is equal in: as much as there is such a row."""


@dataclass
class Preview:
    """What a sweep would do."""

    size: str = ""
    """How large the study is: how many points were skipped, merged and chosen."""
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
    settings: MeasureSettings,
    points: Sequence[Point],
    rows: Sequence[Row],
    root: Path,
    retry: Collection[str] = (),
    say: Say = lambda line: None,
) -> Preview:
    """Return what a sweep would do; nothing is written.

    Parameters
    ----------
    settings : MeasureSettings
        Of the study.
    points : sequence of Point
        Those of the study to run.
    rows : sequence of Row
        The folder's rows so far: they tell which points are done, and how long steps take.
    root : Path
        The cache folder, which need not exist.
    retry : collection of str
        Statuses whose rows are run again.
    say : callable
        Takes a line now and then, which says how far it is.
    """
    planner, history = Planner(settings, root), History(rows)
    held = functools.cache(functools.partial(held_keys, root))
    existing = {row.id: row for row in rows}
    found = Preview(row_bytes=sum(len(row.line()) for row in rows) / len(rows) if rows else None)
    seen: set[tuple[str, str]] = set()
    for count, point in enumerate(points, 1):
        if count % SHOWN_EVERY == 0:
            say(f"planning: {count:,} of {len(points):,} points")
        plan = planner.plan(point)
        row = existing.get(point.id)
        if row is not None and row.stands(plan.key, retry):
            found.current[row.status] += 1
        elif point.unsupported():
            found.unsupported += 1
        else:
            found.to_run.append((point, _needed(found, history, point, plan, held, seen)))
    return found


def _needed(
    found: Preview,
    history: History,
    point: Point,
    plan: Plan,
    held: Callable[[str], Collection[str]],
    seen: set[tuple[str, str]],
) -> tuple[str, ...]:
    """Count a point's steps, and return the names of those to do; other points' are counted already."""
    todo: list[str] = []
    networks = sum(step.name == "network" for step in plan.steps)
    for step in (*plan.steps, plan.measure):
        done = step.kind is not None and step.key in held(step.kind)
        if not done:
            todo.append(step.name)
        shared = step.kind is not None and (step.kind, step.key) in seen
        seen.add((str(step.kind), step.key))
        if shared:
            continue
        (found.cached if done else found.needed)[step.name] += 1
        if not done:
            _estimate(found, history, point, step, networks)
    return tuple(dict.fromkeys(todo))


def _estimate(found: Preview, history: History, point: Point, step: Step, networks: int) -> None:
    """Add a step's time and disk to what was found."""
    seconds = history.seconds(step.name, point)
    if seconds is None:
        found.unknown[step.name] += 1
        return
    share = 1 / networks if step.name == "network" else 1
    found.seconds[step.name] = found.seconds.get(step.name, 0.0) + seconds * share
    if step.name == "network":
        found.network_bytes += history.network_bytes(point) or 0


class History:
    """Rows that tell how long steps take, and how large networks are.

    Parameters
    ----------
    rows : sequence of Row
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = [(row, Point.of(row.__dict__)) for row in rows]
        self._seconds = functools.cache(self._seconds_like)
        self._bytes = functools.cache(self._bytes_like)

    def seconds(self, step: str, point: Point) -> float | None:
        """Return the median time of a step in the rows that are most like a point; None without any."""
        told = (_told(self._seconds(step, axes), point, axes) for axes in SIMILAR[step])
        return next((seconds for seconds in told if seconds is not None), None)

    def network_bytes(self, point: Point) -> int | None:
        """Return the size of a point's network, or of a network of its model; None where no row tells it."""
        told = (_told(self._bytes(axes), point, axes) for axes in SIMILAR["network"])
        return next((size for size in told if size is not None), None)

    def _seconds_like(self, step: str, axes: Axes) -> dict[tuple[str, ...], float]:
        """Return the median time of a step in rows that are equal in some axes."""
        times: dict[tuple[str, ...], list[float]] = {}
        for row, point in self._rows:
            if seconds := _seconds(row, step):
                times.setdefault(_like(point, axes), []).append(seconds)
        return {values: median(own) for values, own in times.items()}

    def _bytes_like(self, axes: Axes) -> dict[tuple[str, ...], int]:
        """Return the size of the first network of rows that are equal in some axes."""
        sizes: dict[tuple[str, ...], int] = {}
        for row, point in self._rows:
            if row.model_bytes:
                sizes.setdefault(_like(point, axes), row.model_bytes)
        return sizes


def _told(facts: Mapping[tuple[str, ...], Number], point: Point, axes: Axes) -> Number | None:
    """Return what rows tell that are equal to a point in some axes, None without any."""
    return facts.get(_like(point, axes)) if facts else None


def _like(point: Point, axes: Axes) -> tuple[str, ...]:
    """Return a point's values on some axes, or the names of its parts there."""
    values = ((getattr(point, axis), name) for axis, _, name in (text.partition(" ") for text in axes))
    return tuple(
        value if isinstance(value, str) else value.name if name else value.json for value, name in values
    )


def _seconds(row: Row, step: str) -> float:
    """Return how long a step of a row took, also where its artifact was made for another row."""
    worked: Mapping[str, Any] = row.seconds or {}
    made: Mapping[str, Any] = row.cached or {}
    return float(worked.get(step) or 0) + float(made.get(step) or 0)
