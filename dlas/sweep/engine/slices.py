"""Slices of points whose measurement was interrupted: kept beside the rows, for the next start."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.measuring.taken import Taken
from dlas.bench.store.keeping import Altered, kept
from dlas.stack import MeasureSettings
from dlas.sweep.engine.planning import Plan
from dlas.sweep.rows.columns import INSTANCE
from dlas.sweep.rows.machines import machine_facts
from dlas.sweep.rows.results import INTERRUPTION

FOLDER = "slices"
"""The folder in that of the results, with a file for each point that is being measured."""

ALIKE = (INSTANCE, "threads")
"""Facts of a device in which two starts agree, beside those that make a machine."""


@dataclass(frozen=True)
class Interrupted:
    """What a point's measurement had taken when it was interrupted."""

    content: Mapping[str, Any]
    """What the step kept: ``key``, ``device``, ``taken``, ``worked_s`` and ``waited_s``."""

    @property
    def slices(self) -> int:
        """Number of its slices."""
        return len(self.content["taken"]["chosen"])

    def seconds(self) -> tuple[float, float]:
        """Return how long all its starts worked, and how long they waited."""
        return self.content["worked_s"], self.content["waited_s"]

    def fields(self, settings: MeasureSettings) -> dict[str, Any] | None:
        """Return the fields of a row, None where the times are no result yet."""
        taken = Taken.of(self.content["taken"])
        if not taken.suffices(settings):
            return None
        return {**taken.fields(), "bound": INTERRUPTION, "device": self.content["device"]}


class KeptSlices:
    """The slices of points in a results folder; each measurement writes its own after every turn.

    Parameters
    ----------
    results : Path
        The results folder, which one sweep writes to at a time.
    """

    def __init__(self, results: Path) -> None:
        self._folder = results / FOLDER
        self._points = _points(self._folder)
        for partial in self._folder.glob(".*.partial"):  # of a process that was killed while it wrote
            partial.unlink(missing_ok=True)

    def has(self, point: str) -> bool:
        """Return whether an earlier start left slices of a point."""
        return point in self._points

    def usable(self, plan: Plan) -> tuple[Interrupted | None, str]:
        """Return a point's slices; or None, and why those that are there belong to another measurement.

        The reason is empty where there are none.
        """
        try:
            content = kept(self._path(plan))
        except Altered as error:
            return None, str(error)
        if content is None:
            return None, ""
        if content["key"] != plan.key:
            return None, "they are of earlier code or options"
        if _differ(_identity(content["device"]), _identity(plan.device.describe())):
            return None, "they are of another machine"
        return Interrupted(content), ""

    def drop(self, plan: Plan) -> None:
        """Delete a point's slices, which a row has now, or which are of no use."""
        self._points.discard(plan.id)
        self._path(plan).unlink(missing_ok=True)
        with suppress(OSError):  # it is not there, or has others
            self._folder.rmdir()

    def arguments(self, plan: Plan, before: Interrupted | None) -> dict[str, Any]:
        """Return what a measurement needs to go on with slices, or with none, and to keep its own."""
        content = before.content if before else None
        return {"path": str(self._path(plan)), "key": plan.key, "before": content}

    def _path(self, plan: Plan) -> Path:
        return self._folder / f"{plan.id}.json"


def count_kept(results: Path) -> int:
    """Return how many points of a results folder have slices that a next start goes on with."""
    return len(_points(results / FOLDER))


def _points(folder: Path) -> set[str]:
    """Return the points that have a file."""
    return {path.stem for path in folder.glob("*.json") if not path.name.startswith(".")}


def _identity(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two starts of a measurement must have in common: machine, board and threads."""
    return {**machine_facts(device), **{name: device[name] for name in ALIKE if name in device}}


def _differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two devices differ in what is known of both: a board that is away tells little."""
    return any(first[name] != second[name] for name in first.keys() & second.keys())
