"""What runs the steps of a machine with a device: those that make artifacts also on other machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlas.bench.processes.events import ChildEnd, Event, Said, Task, TaskEnd, TaskError
from dlas.bench.processes.interface import Runner
from dlas.bench.store.cache import Cache
from dlas.errors import CorruptArtifact
from dlas.sweep.cluster.helper import Made
from dlas.sweep.cluster.parcels import unpack

LOOK_S = 0.1
"""How often other machines are asked while they work."""


class Gone(Exception):
    """Another machine, or its work, is lost; the message says what is known."""


class Elsewhere(ABC):
    """Another machine that makes artifacts."""

    name: str
    slots: int
    """Jobs that it may do at a time."""

    @abstractmethod
    def begin(self, task: Task, memory: int, threads: int) -> object | None:
        """Begin to make a task's artifact; return what :meth:`ended` knows it by, None if it cannot now.

        Raises
        ------
        Gone
        """

    @abstractmethod
    def ended(self, work: object) -> Made | None:
        """Return how work ended; None while it goes on.

        Raises
        ------
        Gone
        """


@dataclass(frozen=True)
class _Away:
    """A job on another machine."""

    place: Elsewhere
    work: object
    task: Task
    log: Path


class SpreadRunner(Runner):
    """Runs jobs here, and those that make an artifact on other machines while these have room.

    What fails there is made again here: a file or a package may only be on this machine.

    Parameters
    ----------
    here : Runner
    cache : Cache
        Where artifacts from elsewhere are put.
    others : sequence of Elsewhere
    """

    def __init__(self, here: Runner, cache: Cache, others: Sequence[Elsewhere]) -> None:
        self._here, self._cache = here, cache
        self._others = list(others)
        self._numbers = 0
        self._own: dict[int, int] = {}  # the numbers of jobs here, by those that the runner here gave them
        self._away: dict[int, _Away] = {}
        self._here_only: set[str] = set()
        self._refused: list[Event] = []

    @property
    def elsewhere(self) -> int:
        """Number of jobs that run on other machines."""
        return len(self._away)

    @property
    def room_elsewhere(self) -> int:
        """Number of further jobs that other machines can run."""
        return sum(map(self._room, self._others))

    def goes_elsewhere(self, key: str) -> bool:
        """Return whether another machine has room for what makes an artifact, and has not failed at it."""
        return key not in self._here_only and self.room_elsewhere > 0

    def start(self, tasks: Sequence[Task], *, log: Path, memory: int, threads: int = 1) -> int:
        """Run tasks, elsewhere if they make an artifact and there is room.

        Where the other machine cannot now, they end and are to be started again: this one may be measuring.
        """
        self._numbers += 1
        task = tasks[0]
        if not task.makes or not self.goes_elsewhere(task.makes[1]):
            self._own[self._here.start(tasks, log=log, memory=memory, threads=threads)] = self._numbers
            return self._numbers
        place = next(filter(self._room, self._others))
        try:
            work, why = place.begin(task, memory, threads), "it has no room for what that needs"
        except Gone as error:
            self._others.remove(place)
            work, why = None, str(error)
        self._away[self._numbers] = _Away(place, work, task, log)
        if work is None:
            self._refused += self._to_make_here(self._numbers, f"on {place.name}: {why}")
        return self._numbers

    def turn(self, job: int) -> None:
        """Let a job that waits continue."""
        self._here.turn(self._inner(job))

    def pause(self, job: int) -> None:
        """Stop a job that runs here: others do not disturb this machine."""
        if job in self._own.values():
            self._here.pause(self._inner(job))

    def resume(self, job: int) -> None:
        """Let a paused job continue."""
        if job in self._own.values():
            self._here.resume(self._inner(job))

    def events(self, seconds: float) -> list[Event]:
        """Return the events so far, here and elsewhere."""
        events, self._refused = self._refused, []
        wait_s = 0.0 if events else LOOK_S if self._away else seconds
        events += [self._ours(event) for event in self._here.events(wait_s)]
        for job in list(self._away):
            events += self._returned(job)
        return events

    def close(self) -> None:
        """End every job that runs here; those elsewhere end with the processes that run them."""
        self._here.close()

    def _inner(self, job: int) -> int:
        return next(inner for inner, outer in self._own.items() if outer == job)

    def _ours(self, event: Event) -> Event:
        """Return an event with the number by which the sweep knows its job."""
        ours = replace(event, job=self._own[event.job])
        if isinstance(event, ChildEnd):
            del self._own[event.job]
        return ours

    def _room(self, place: Elsewhere) -> int:
        return place.slots - sum(away.place is place for away in self._away.values())

    def _returned(self, job: int) -> list[Event]:
        """Return the events of a job elsewhere if it has ended: its end, or that it is to be made again."""
        away = self._away[job]
        try:
            made = away.place.ended(away.work)
            if made is None:
                return []
            if made.parcel is None:
                why = made.end.raised.text if made.end.raised else f"it left with {made.end.exit}"
                return self._to_make_here(job, f"on {away.place.name}: {why}")
            unpack(self._cache, made.parcel)
        except Gone as error:
            if away.place in self._others:
                self._others.remove(away.place)
            return self._to_make_here(job, f"{away.place.name} is gone: {error}")
        except CorruptArtifact as error:
            return self._to_make_here(job, f"from {away.place.name}: {error}")
        del self._away[job]
        with away.log.open("a") as log:
            log.write(made.log)
        said = [Said(job, text) for text in made.said[-1:]]
        task = TaskEnd(job, 0, made.end.seconds[0], made.end.waited[0])
        return [*said, task, replace(made.end, job=job)]

    def _to_make_here(self, job: int, why: str) -> list[Event]:
        """Return the end of a job elsewhere whose artifact is to be made again, on this machine."""
        away = self._away.pop(job)
        self._here_only.add(away.task.makes[1])
        error = TaskError("Elsewhere", why, cause="artifact")
        return [ChildEnd(job, 1, (), (0.0,), (0.0,), raised=error)]
