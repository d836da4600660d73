"""Stations and helpers in processes of other machines, through Ray."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from dlas.bench.processes.events import Task
from dlas.bench.processes.server import WorkerServer
from dlas.bench.store.cache import Cache, default_root
from dlas.errors import one_line
from dlas.sweep.cluster.connection import PREFIX, ray
from dlas.sweep.cluster.helper import Helper, Made
from dlas.sweep.cluster.nodes import ClusterNode
from dlas.sweep.cluster.parcels import Parcel, pack
from dlas.sweep.cluster.spread import Elsewhere, Gone, SpreadRunner
from dlas.sweep.cluster.station import Given, Report, Station
from dlas.sweep.cluster.sweep import Post
from dlas.sweep.engine.sweep import SweepOptions

CALLS = 4
"""Calls of a station at a time: a report is asked for while another call runs."""
MOST_PARCELS = 32
"""Artifacts that a station keeps in Ray's store, for those that need them next."""


def _root(cache: str | None) -> Path:
    return default_root() if cache is None else Path(cache)


class HelperActor:
    """A helper in its process.

    Parameters
    ----------
    cache : str or None
        Its cache, None for the machine's own.
    """

    def __init__(self, cache: str | None) -> None:
        self._helper = Helper(_root(cache), functools.partial(WorkerServer, spawned=True))

    def make(self, task: Task, memory: int, threads: int, parcels: Sequence[tuple[str, str, Any]]) -> Made:
        """Make an artifact; ``parcels`` are kinds and keys of what it needs, with references to it."""
        references = {(kind, key): reference for kind, key, reference in parcels}

        def fetch(kind: str, key: str) -> Parcel:
            parcel: Parcel = ray().get(references[kind, key])
            return parcel

        return self._helper.make(task, memory, threads, fetch)


class RemoteHelper(Elsewhere):
    """A helper, as a station sees it.

    Parameters
    ----------
    actor : actor handle
    name : str
        Of its machine.
    slots : int
        Jobs that this station may have there.
    cache : Cache
        Of the station.
    """

    def __init__(self, actor: Any, name: str, slots: int, cache: Cache) -> None:
        self.name, self.slots = name, slots
        self._actor = actor
        self._stored = functools.lru_cache(maxsize=MOST_PARCELS)(functools.partial(_stored, cache))

    def begin(self, task: Task, memory: int, threads: int) -> object | None:
        """Begin to make a task's artifact; None where Ray's store has no room for what it needs."""
        try:
            parcels = [(kind, key, self._stored(kind, key)) for kind, key in task.needs]
            reference: object = self._actor.make.remote(task, memory, threads, parcels)
        except (LookupError, ray().exceptions.ObjectStoreFullError, ray().exceptions.OutOfDiskError):
            return None
        except ray().exceptions.RayError as error:
            raise Gone(one_line(str(error))) from None
        return reference

    def ended(self, work: object) -> Made | None:
        """Return how work ended; None while it goes on."""
        ready, _ = ray().wait([work], timeout=0)
        if not ready:
            return None
        try:
            made: Made = ray().get(work)
        except ray().exceptions.RayError as error:
            raise Gone(one_line(str(error))) from None
        return made


def _stored(cache: Cache, kind: str, key: str) -> object:
    """Put an artifact into Ray's store.

    Raises
    ------
    LookupError
        If the cache has it no more.
    """
    parcel = pack(cache, kind, key)
    if parcel is None:
        raise LookupError(key)
    return ray().put(parcel)


class StationActor(Station):
    """A station in its process.

    Parameters
    ----------
    name : str
        Of its machine.
    cache : str or None
        Its cache, None for the machine's own.
    cache_bytes : int
        Size that it is kept within.
    helpers : sequence
        Handles of helpers, with the names of their machines and the jobs that it may have there.
    """

    def __init__(
        self, name: str, cache: str | None, cache_bytes: int, helpers: Sequence[tuple[Any, str, int]]
    ) -> None:
        def make_runner(own: Cache) -> SpreadRunner:
            others = [RemoteHelper(actor, at, slots, own) for actor, at, slots in helpers]
            return SpreadRunner(WorkerServer(spawned=True), own, others)

        super().__init__(name, _root(cache), cache_bytes, make_runner)


class RemotePost(Post):
    """A station, as it is seen from here.

    Parameters
    ----------
    node : ClusterNode
        Its machine.
    hardware : collection of str
        What the study has of what the machine offers: it is reserved.
    """

    def __init__(
        self,
        node: ClusterNode,
        hardware: Collection[str],
        cache: str | None,
        cache_bytes: int,
        helpers: Sequence[tuple[Any, str, int]],
    ) -> None:
        self.name, self.node, self.hardware = node.name, node, tuple(hardware)
        actor = ray().remote(
            num_cpus=0,
            max_restarts=0,
            max_concurrency=CALLS,
            resources={PREFIX + name: 1 for name in hardware},
        )(StationActor)
        self.actor = actor.options(scheduling_strategy=node.placed()).remote(
            node.name, cache, cache_bytes, helpers
        )
        self._asked: Any = None
        self._started = self.actor.__ray_ready__.remote()

    def started(self, seconds: float) -> bool:
        """Return whether it has what it reserves, after waiting for it.

        Raises
        ------
        Gone
            If it could not be started.
        """
        ready, _ = ray().wait([self._started], timeout=seconds)
        if ready:
            self._got(self._started)
        return bool(ready)

    def begin(self, study: str, options: SweepOptions) -> None:
        """Begin a sweep of a study, of which no earlier report tells.

        Raises
        ------
        Gone
        """
        self._asked = None
        self.call("begin", study, options)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a method of the station returns.

        Raises
        ------
        Gone
        """
        return self._got(getattr(self.actor, name).remote(*arguments))

    def give(self, points: Sequence[Given]) -> None:
        """Give it points."""
        self.actor.give.remote(points)

    def end(self) -> None:
        """Give it no more."""
        self.actor.end.remote()

    def report(self, seen: int) -> Report | None:
        """Return its latest report, None while none is there."""
        if self._asked is None:
            self._asked = self.actor.report.remote(seen)
        ready, _ = ray().wait([self._asked], timeout=0)
        if not ready:
            return None
        report: Report = self._got(self._asked)
        self._asked = None
        return report

    def stop(self) -> None:
        """Have it end now."""
        self.actor.stop.remote()

    def _got(self, reference: Any) -> Any:
        try:
            return ray().get(reference)
        except ray().exceptions.RayError as error:
            raise Gone(one_line(str(error))) from None


def make_helper(node: ClusterNode, cache: str | None) -> Any:
    """Return the handle of a helper on a machine."""
    actor = ray().remote(num_cpus=0, max_restarts=0, max_concurrency=max(1, node.cores))(HelperActor)
    return actor.options(scheduling_strategy=node.placed()).remote(cache)
