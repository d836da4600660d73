"""The build of a row and its network: from the cache, or made again by the steps of the row's point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from dlas.bench.store.cache import Artifact, Cache
from dlas.errors import CorruptArtifact, InputError
from dlas.stack import MeasureSettings
from dlas.stack.types import Say
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.progress import Progress, Silent, SilentProgress, UnderWay
from dlas.sweep.engine.session import Session
from dlas.sweep.engine.steps.artifacts import load_verified
from dlas.sweep.rows.results import Row
from dlas.sweep.study.parts import LIBRARY
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

CHANGED = "it was built anew, with other code or tools than the build that was measured"
RESCHEDULED = (
    "its schedules are not those that were measured: the records of their search were lost or changed"
)


@dataclass(frozen=True)
class CachedBuild:
    """A row's network and build in the cache."""

    network: Artifact
    build: Artifact
    notes: list[str]
    """In what the build may differ from the one that was measured."""


def built(row: Row, point: Point, cache: Cache, say: Say) -> CachedBuild:
    """Return the network and the build of a row; what the cache has dropped is made again.

    Raises
    ------
    InputError
        If a step fails.
    """
    found = _cached(cache, row.artifacts)
    if found is None:
        say("its build is not in the cache: building it again")
        (found,) = made([point], cache, say)
    network, build = found
    return CachedBuild(network, build, differences(row, build))


def made(points: Sequence[Point], cache: Cache, say: Say) -> list[tuple[Artifact, Artifact]]:
    """Return the network and the build of each point, which the cache has or its steps make.

    Raises
    ------
    InputError
        If a step fails.
    """
    make(points, cache, say, until="build")
    planner = Planner(MeasureSettings(), cache.root)
    found = [_cached(cache, planner.plan(point).artifacts()) for point in points]
    kept = [each for each in found if each is not None]
    if len(kept) < len(points):
        raise InputError("the cache is too small: it dropped the build at once")
    return kept


def differences(row: Row, build: Artifact) -> list[str]:
    """Return in what a build may differ from the one that was measured."""
    notes = [CHANGED] if build.key != row.artifacts.get("build") else []
    if searched_schedules(build.facts["layers"]) != searched_schedules(row.layers):
        notes.append(RESCHEDULED)
    return notes


def _cached(cache: Cache, keys: Mapping[str, Any]) -> tuple[Artifact, Artifact] | None:
    """Return the network and the build of these keys if the cache has both, undamaged."""
    try:
        return load_verified(cache, "network", keys["network"]), load_verified(cache, "build", keys["build"])
    except (CorruptArtifact, KeyError):
        return None


def make(points: Sequence[Point], cache: Cache, say: Say, until: str) -> None:
    """Run the steps of points up to one, as a sweep does.

    Raises
    ------
    InputError
        If a step fails.
    """
    workspace = f"deploy-{points[0].id}"
    # Its measure and limits count: the points are given.
    study = Study({"batch": points[0].batch}, name="deploy")
    with Session.open(cache=cache.root, keep_builds=True, display=StepLines(say)) as session:
        rows = session.make(study, points, until=until, workspace=workspace)
    for row in rows.rows:
        if row.status != "ok":
            log = rows.folder / "logs" / f"{row.id}.log"
            raise InputError(
                f"row {row.id} cannot be built again: {row.status} in step {row.step}: {row.reason} ({log})"
            )
    cache.drop_workspace(workspace)


def searched_schedules(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what decides the loops of each layer that an algorithm computes, by the layer's name.

    A runtime's own kernels have no schedules, and a build lists fewer of them than a row, which has
    profiled them.
    """
    return {
        layer["name"]: [layer.get(key) for key in ("algorithm", "options", "decisions")]
        for layer in layers
        if layer.get("algorithm") not in (None, LIBRARY)
    }


class StepLines(Silent):
    """Shows what steps say, and nothing else of a sweep.

    Parameters
    ----------
    tell : callable
    """

    def __init__(self, tell: Say) -> None:
        self._tell = tell

    def sweep(self, total: int, axes: Sequence[str], inline: bool) -> AbstractContextManager[Progress]:
        """Return what shows the lines of a sweep's steps."""
        return nullcontext(_Lines(self._tell))


class _Lines(SilentProgress):
    """Progress as the lines that steps say."""

    def __init__(self, tell: Say) -> None:
        self._tell = tell

    def say(self, point: UnderWay, text: str) -> None:
        """Show a line of a step."""
        self._tell(text)
