"""Warm processes that build and time candidates: they outlast a batch, and die with their parent.

They are forked from a process that has never run a kernel, since threads do not
survive a fork.  One that crashes or hangs is replaced, and what it was doing is
answered with how it ended.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

from dlas.processes.child import die_with_parent
from dlas.processes.outcome import signal_name

CANDIDATE_BYTES = 4 * 2**30
"""Memory that a worker may take beyond what it was forked with: its candidates at hand and their data."""
MOST_CHARACTERS = 300

Reply = dict[str, Any]
Verbs = Mapping[str, Callable[..., Reply]]
"""What a worker can do, by the word that asks for it."""


class Failed(Exception):
    """What was asked for failed, in the words of whoever noticed.

    Parameters
    ----------
    kind : str
        One of :data:`dlas.tuning.records.Failure`.
    words : str
    """

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind}: {words}")
        self.kind, self.words = kind, words


class Worker:
    """One process that answers messages, one after the other.

    Parameters
    ----------
    start : callable
        Called in the process itself; returns what it can do.
    memory : int, optional
        Bytes that it may take beyond what it is forked with.
    """

    def __init__(self, start: Callable[[], Verbs], memory: int | None) -> None:
        self.connection, theirs = Pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            _serve(parent, start, memory, theirs)
        theirs.close()
        with suppress(EOFError, OSError):
            self.connection.recv_bytes()  # before it is bound to die with us, it must not be stopped

    def send(self, message: Mapping[str, Any]) -> None:
        """Ask for something; if it has died, its end is the answer."""
        with suppress(OSError):
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> Reply:
        """Return the answer to the oldest question; how it ended, if it did."""
        try:
            reply: Reply = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return {"failed": "crash", "words": self.end(), "gone": True}
        return reply

    def end(self) -> str:
        """End the process if it has not yet; return how it ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"killed by {signal_name(-code)}" if code < 0 else f"left with exit code {code}"


class Crew:
    """As many workers as are useful.

    Parameters
    ----------
    count : int
    start, memory
        As for :class:`Worker`.
    """

    def __init__(self, count: int, start: Callable[[], Verbs], memory: int | None = CANDIDATE_BYTES) -> None:
        self._fork = functools.partial(Worker, start, memory)
        self.workers = [self._fork() for _ in range(count)]

    def ask(self, worker: int, seconds: float, /, **message: Any) -> Reply:
        """Ask one worker for something while the others stand still: threads spin on after a kernel."""
        others = [each.pid for number, each in enumerate(self.workers) if number != worker]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            ((_, _, reply),) = self.share([message], seconds, among=[worker])
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)
        return reply

    def share(
        self, messages: Sequence[Mapping[str, Any]], seconds: float, among: Sequence[int] | None = None
    ) -> Iterator[tuple[int, int, Reply]]:
        """Let all workers answer messages side by side.

        Parameters
        ----------
        messages : sequence of mapping
            ``do`` is the verb, the rest its arguments.
        seconds : float
            How long each may take.
        among : sequence of int, optional
            Workers to ask; by default all.

        Yields
        ------
        message, worker : int
        reply : dict
            With ``failed`` and ``words`` where it failed, and ``gone`` where the
            worker is a new one that has nothing of what the old one had made.
        """
        waiting = deque(enumerate(messages))
        idle = list(range(len(self.workers)) if among is None else among)
        busy: dict[int, tuple[int, float]] = {}
        while waiting or busy:
            while waiting and idle:
                worker = idle.pop(0)
                number, message = waiting.popleft()
                self.workers[worker].send(message)
                busy[worker] = (number, time.monotonic() + seconds)
            for worker in self._ready(busy):
                number, _ = busy.pop(worker)
                reply = self._reply(worker, seconds)
                idle.append(worker)
                yield number, worker, reply

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.end()

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, busy: Mapping[int, tuple[int, float]]) -> list[int]:
        """Return the workers that have answered, died, or run out of time."""
        left = min(deadline for _, deadline in busy.values()) - time.monotonic()
        by_connection = {self.workers[worker].connection: worker for worker in busy}
        answered = [by_connection[each] for each in wait(list(by_connection), max(0.0, left))]  # type: ignore[index]
        return answered or [worker for worker, (_, at) in busy.items() if at <= time.monotonic()]

    def _reply(self, worker: int, seconds: float) -> Reply:
        """Return a worker's answer; replace it if it gave none."""
        each = self.workers[worker]
        if each.connection.poll(0):
            reply = each.receive()
        else:
            each.end()
            reply = {"failed": "hang", "words": f"took longer than {seconds:.3g} s", "gone": True}
        if reply.get("gone"):
            self.workers[worker] = self._fork()
        return reply


def _serve(parent: int, start: Callable[[], Verbs], memory: int | None, connection: Connection) -> NoReturn:
    """Answer until there is nobody left to answer, and leave without the parent's clean-up."""
    code = 1
    try:
        die_with_parent(parent)
        connection.send_bytes(b"ready")
        if memory is not None:
            _limit_memory(memory)
        verbs = start()
        while True:
            message = json.loads(connection.recv_bytes())
            reply = _answer(verbs[message.pop("do")], message)
            connection.send_bytes(json.dumps(reply).encode())
    except (EOFError, OSError):
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _answer(verb: Callable[..., Reply], arguments: dict[str, Any]) -> Reply:
    try:
        return verb(**arguments)
    except Failed as failed:
        return {"failed": failed.kind, "words": failed.words}
    except Exception as error:
        return {"failed": "run", "words": words(error)}


def words(error: BaseException) -> str:
    """Return an error in one line: TVM says what is wrong last, under the code that it is wrong in."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    return said[:MOST_CHARACTERS]


def _limit_memory(more: int) -> None:
    """Let allocations fail, inside the one candidate that asks for too much."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    held = int(fields["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (held + more, held + more))
