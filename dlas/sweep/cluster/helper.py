"""On a machine of the cluster without a device: making networks and programs for stations."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dlas.bench.processes.events import ChildEnd, Said, Task
from dlas.bench.processes.interface import Runner
from dlas.bench.store.cache import Cache
from dlas.sweep.cluster.parcels import Parcel, pack, unpack

LOOK_S = 1.0
"""How long a job is waited for before its process is looked at again."""


@dataclass(frozen=True)
class Made:
    """How a job ended elsewhere."""

    end: ChildEnd
    parcel: Parcel | None
    """The artifact, if it was made."""
    log: str
    """What the job wrote."""
    said: Sequence[str]


class Helper:
    """Makes artifacts, several at a time, each by a server of its own.

    Parameters
    ----------
    root : Path
        Its cache.
    make_runner : callable
        Returns what runs steps.
    """

    def __init__(self, root: Path, make_runner: Callable[[], Runner]) -> None:
        self._cache = Cache(root)
        self._make_runner = make_runner
        self._idle: queue.SimpleQueue[Runner] = queue.SimpleQueue()

    def make(self, task: Task, memory: int, threads: int, fetch: Callable[[str, str], Parcel]) -> Made:
        """Make the artifact of a task, unless the cache has it.

        Parameters
        ----------
        task : Task
        memory : int
            Bytes that it may use.
        threads : int
            Of numerical libraries.
        fetch : callable
            Returns the parcel with an artifact that it is made from, by kind and key.
        """
        kind, key = task.makes
        if (parcel := pack(self._cache, kind, key)) is not None:
            return Made(ChildEnd(0, 0, [{}], [0.0], [0.0]), parcel, "", ())
        for needed in task.needs:
            if self._cache.get(*needed) is None:
                unpack(self._cache, fetch(*needed))
        log = self._cache.workspace("cluster") / f"{kind}-{key}.log"
        log.unlink(missing_ok=True)
        here = replace(task, arguments={**task.arguments, "root": str(self._cache.root)})
        with self._runner() as runner:
            end, said = _run(runner, here, log, memory, threads)
        parcel = pack(self._cache, kind, key) if end.complete else None
        if kind == "build":
            self._cache.discard(kind, key)  # as sweeps do: thousands would fill a disk
        self._cache.evict()
        return Made(end, parcel, log.read_text(errors="replace") if log.exists() else "", said)

    @contextmanager
    def _runner(self) -> Iterator[Runner]:
        """Lend a runner that nobody uses; one that fails is not lent again."""
        try:
            runner = self._idle.get_nowait()
        except queue.Empty:
            runner = self._make_runner()
        try:
            yield runner
        except BaseException:
            runner.close()
            raise
        self._idle.put(runner)


def _run(runner: Runner, task: Task, log: Path, memory: int, threads: int) -> tuple[ChildEnd, list[str]]:
    """Run a task until its end, and return what it said too."""
    runner.start([task], log=log, memory=memory, threads=threads)
    said: list[str] = []
    while True:
        for event in runner.events(LOOK_S):
            match event:
                case ChildEnd():
                    return event, said
                case Said(text=text):
                    said.append(text)
