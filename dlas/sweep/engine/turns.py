"""Allocation of a device: to points that are measured in turns, or to one point for a step of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from dlas.bench.measuring.machine import Machine
from dlas.bench.processes.interface import Runner
from dlas.bench.store.cache import Cache
from dlas.bench.store.locks import Lock, holder, locked, take_lock
from dlas.sweep.engine.point_run import PointRun

FREE_MEMORY = 0.25
"""Another member starts only while this share of the memory is free."""


class Turns:
    """Gives a device to the members of a comparison, one at a time, or to one point for a step of its own.

    Each member runs up to its first turn, then they continue in a circle, so that
    disturbances of the machine affect all of them alike.

    Parameters
    ----------
    runner : Runner
        Carries out turns and pauses.
    cache : Cache
        Provides the lock of a search's artifact.
    launch : callable
        Starts a member's step and returns the number of its job.
    most : int
        Largest number of members at a time.
    free_memory : callable, optional
        Returns the share of the memory that is free; by default this machine's.
    """

    def __init__(
        self,
        runner: Runner,
        cache: Cache,
        launch: Callable[[PointRun], int],
        most: int,
        free_memory: Callable[[], float] | None = None,
    ) -> None:
        self.most = most
        self._runner, self._cache = runner, cache
        self._launch = launch
        self._free_memory = free_memory or Machine().free_memory
        self._waiting: list[PointRun] = []
        self._members: dict[int, PointRun] = {}  # by job; the one that waited longest for its turn is first
        self._turn_of: int | None = None
        self._locks: list[Lock] = []
        self._paused: list[int] = []
        self.fills_machine = False
        """Whether the device in use is this machine, so that nothing else may run on it."""

    @property
    def taken(self) -> bool:
        """Whether a device is in use."""
        return bool(self._locks)

    def start(self, runs: Sequence[PointRun], jobs: Iterable[int]) -> None:
        """Unless a device is in use, give one to the first points whose next step uses it.

        Parameters
        ----------
        runs : sequence of PointRun
            All points in progress, in order.
        jobs : iterable of int
            All other jobs: they are paused while this machine is the device.
        """
        if self.taken:
            return
        self._waiting, self._locks = self._measurable(runs) or self._step_alone(runs) or ([], [])
        if not self.taken:
            return
        self.fills_machine = self._waiting[0].plan.device.local
        self._paused = list(jobs) if self.fills_machine else []
        for job in self._paused:
            self._runner.pause(job)
        self._next()

    def member(self, job: int) -> PointRun:
        """Return the member that a job works on."""
        return self._members[job]

    def members(self) -> list[PointRun]:
        """Return the points whose step on the device has been started."""
        return list(self._members.values())

    def turn_asked(self, job: int) -> None:
        """Give the turn to another member, after a job has asked for its next one."""
        if job == self._turn_of:
            self._next()

    def ended(self, job: int) -> None:
        """Remove a member whose job has ended; after the last one the device is free."""
        del self._members[job]
        self.turn_asked(job)

    def release_locks(self) -> None:
        """Release the device for other sweeps."""
        for lock in self._locks:
            lock.release()
        self._locks = []

    def _next(self) -> None:
        """Start the next member, or let the one that waited longest continue."""
        if self._waiting and self._members and self._free_memory() < FREE_MEMORY:
            self._waiting.clear()  # they have their turns after the current members
        if self._waiting:
            run = self._waiting.pop(0)
            self._turn_of = run.job = self._launch(run)
            self._members[run.job] = run
        elif self._members:
            self._turn_of = next(iter(self._members))
            self._members[self._turn_of] = self._members.pop(self._turn_of)
            self._runner.turn(self._turn_of)
        else:
            self._release()

    def _release(self) -> None:
        """Free the device and resume the other jobs."""
        self.release_locks()
        for job in self._paused:
            self._runner.resume(job)
        self._paused, self._turn_of = [], None
        self.fills_machine = False

    def _measurable(self, runs: Sequence[PointRun]) -> tuple[list[PointRun], list[Lock]] | None:
        """Return the next points of the first comparison where all are ready, and the device's lock."""
        for comparison in dict.fromkeys(run.plan.comparison for run in runs):
            points = [run for run in runs if run.plan.comparison == comparison]
            device = points[0].plan.device
            together = next_together(points, min(self.most, device.most_programs or self.most))
            if all(run.ready for run in together):
                lock = lock_device(device.device)
                if lock is not None:
                    return together, [lock]
        return None

    def _step_alone(self, runs: Sequence[PointRun]) -> tuple[list[PointRun], list[Lock]] | None:
        """Return the first point whose next step needs the device exclusively, and its locks.

        None of a later comparison while jobs on this machine make an earlier one ready: they would stand
        still, and a sweep would search for all its points before the first has a row.
        """
        for comparison in dict.fromkeys(run.plan.comparison for run in runs):
            points = [run for run in runs if run.plan.comparison == comparison]
            for run in points:
                if run.job is None and not run.ready and run.step.alone:
                    locks = self._locks_alone(run)
                    if locks:
                        return [run], locks
            searched = not any(step.alone for run in points for step in run.plan.steps[run.done :])
            here = points[0].plan.device.local and not self._runner.elsewhere
            if here and searched and any(run.running for run in points):
                return None
        return None

    def _locks_alone(self, run: PointRun) -> list[Lock]:
        """Return the locks of a step's device and artifact; none if one is held or the artifact exists."""
        kind, key = run.step.kind, run.step.key
        device = lock_device(run.plan.device.device)
        if kind is None:
            return [device] if device is not None else []
        artifact = self._cache.try_lock(f"{kind}-{key}") if device is not None else None
        locks = [lock for lock in (device, artifact) if lock is not None]
        if len(locks) == 2 and self._cache.get(kind, key) is None:
            return locks
        for lock in locks:
            lock.release()
        return []


def next_together(comparison: Sequence[PointRun], most: int) -> list[PointRun]:
    """Return the first points of a comparison, ``most`` of them or a few less.

    The points of one network stay together, unless there are more than ``most``: kernels
    that are compared on the same weights take turns.
    """
    first = list(comparison[:most])
    if len(comparison) == len(first):
        return first
    network = first[-1].plan.content["compression"]
    if comparison[most].plan.content["compression"] != network:
        return first
    return [run for run in first if run.plan.content["compression"] != network] or first


def lock_device(device: str) -> Lock | None:
    """Return the lock of a device, or None while another sweep holds it."""
    return take_lock(_lock_file(device))


@contextmanager
def device_alone(device: str) -> Iterator[None]:
    """Hold a device, after waiting for who measures on it."""
    with locked(_lock_file(device)):
        yield


def device_holder(device: str) -> int | None:
    """Return the process that holds a device, or held it last; None where that is unknown."""
    return holder(_lock_file(device))


def _lock_file(device: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"dlas-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"device-{quote(device, safe='')}.lock"
