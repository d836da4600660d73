"""How long the steps of a point took: working, standing still, and for artifacts that were in the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dlas.bench.processes.events import TaskEnded
from dlas.sweep.engine.planning import Step


@dataclass
class Durations:
    """Seconds by step; a step may run more than once, or make several artifacts.

    Parameters
    ----------
    worked, waited : dict of str to float
        Time that it worked, and that it was paused or waited for its turn.
    cached : dict of str to float
        Time that its artifacts which were in the cache took when they were made for other points.
    """

    worked: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    cached: dict[str, float] = field(default_factory=dict)
    _artifacts: set[str] = field(default_factory=set)

    def add(self, step: Step, worked: float, waited: float) -> None:
        """Add a run of a step."""
        self._artifacts.add(step.key)
        _add(self.worked, step, worked)
        _add(self.waited, step, waited)

    def add_artifact(self, step: Step, notes: Mapping[str, Any], owner: str) -> None:
        """Add the artifact of a step that was in the cache, once.

        Parameters
        ----------
        step : Step
        notes : mapping
            What :func:`notes` returned when it was made; empty where that is unknown.
        owner : str
            The point that it is used for.  If it was made for that point too, before
            an interruption, its time counts as the point's own.
        """
        if step.key in self._artifacts or not notes:
            return
        if notes.get("owner") == owner:
            self.add(step, notes["seconds"], notes["waited"])
        else:
            self._artifacts.add(step.key)
            _add(self.cached, step, notes["seconds"])


def notes(end: TaskEnded, owner: str) -> dict[str, Any]:
    """Return what to note of the artifact of a step that has ended.

    Parameters
    ----------
    end : TaskEnded
    owner : str
        The point that it was made for, with its results folder.
    """
    return {"seconds": end.seconds, "waited": end.waited, "owner": owner}


def _add(seconds: dict[str, float], step: Step, more: float) -> None:
    seconds[step.name] = seconds.get(step.name, 0.0) + more
