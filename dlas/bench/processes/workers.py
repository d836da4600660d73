"""A pool of worker processes that stay alive between batches of work and die with their parent.

The pool replaces a worker that crashes or hangs; the reply then says how it ended.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from dlas.bench.processes.forking import fork
from dlas.bench.processes.outcome import signal_name

CANDIDATE_BYTES = 4 * 2**30
"""Memory that a worker may allocate after the fork, for its candidates and their data."""
MOST_CHARACTERS = 300

Reply = dict[str, Any]
Handlers = Mapping[str, Callable[..., Reply]]
"""Functions of a worker, by the name that a message gives as ``do``."""


class RequestFailed(Exception):
    """A worker could not carry out a request.

    Parameters
    ----------
    kind : str
        One of :data:`dlas.lowering.tuning.records.Failure`.
    words : str
        What went wrong.
    """

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind}: {words}")
        self.kind, self.words = kind, words


class Worker:
    """A process that answers messages one after the other.

    Parameters
    ----------
    start : callable
        Called in the process itself; returns its handlers.
    memory : int, optional
        Bytes that it may allocate after the fork.
    """

    def __init__(self, start: Callable[[], Handlers], memory: int | None) -> None:
        self.pid, self.connection = fork(functools.partial(_serve_in_thread, start, memory))
        with suppress(EOFError, OSError):
            # Its first message says that it will die with its parent; until then it could outlive it.
            self.connection.recv_bytes()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; if the process has died, :meth:`receive` reports it."""
        with suppress(OSError):
            self.connection.send_bytes(json.dumps(message).encode())

    def receive(self) -> Reply:
        """Return the reply to the oldest message, or how the process ended."""
        try:
            reply: Reply = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            return {"failed": "crash", "words": self.end(), "gone": True}
        return reply

    def end(self) -> str:
        """End the process if it has not ended yet; return how it ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return f"killed by {signal_name(-code)}" if code < 0 else f"left with exit code {code}"


class WorkerPool:
    """Several identical workers.

    Parameters
    ----------
    count : int
    start, memory
        As for :class:`Worker`.
    """

    def __init__(
        self, count: int, start: Callable[[], Handlers], memory: int | None = CANDIDATE_BYTES
    ) -> None:
        self._fork = functools.partial(Worker, start, memory)
        self.workers = [self._fork() for _ in range(count)]

    def call(self, worker: int, seconds: float, /, **message: Any) -> Reply:
        """Send one worker a message and return its reply; meanwhile all others are stopped.

        They are stopped because threads of a kernel spin for a while after it ends.
        """
        others = [other.pid for number, other in enumerate(self.workers) if number != worker]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            ((_, _, reply),) = self.map([message], seconds, among=[worker])
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)
        return reply

    def map(
        self, messages: Sequence[Mapping[str, Any]], seconds: float, among: Sequence[int] | None = None
    ) -> Iterator[tuple[int, int, Reply]]:
        """Let the workers answer messages in parallel.

        Parameters
        ----------
        messages : sequence of mapping
            ``do`` names the handler; the rest are its arguments.
        seconds : float
            Time limit of each message.
        among : sequence of int, optional
            Workers to use; by default all.

        Yields
        ------
        message, worker : int
        reply : dict
            With ``failed`` and ``words`` if it failed, and ``gone`` if the worker
            was replaced by a new one, which has none of the old one's state.
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

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ready(self, busy: Mapping[int, tuple[int, float]]) -> list[int]:
        """Return the workers that have answered, died or exceeded their time limit."""
        seconds_left = min(deadline for _, deadline in busy.values()) - time.monotonic()
        numbers = {self.workers[worker].connection: worker for worker in busy}
        answered = [numbers[connection] for connection in wait(list(numbers), max(0.0, seconds_left))]  # type: ignore[index]
        return answered or [worker for worker, (_, deadline) in busy.items() if deadline <= time.monotonic()]

    def _reply(self, number: int, seconds: float) -> Reply:
        """Return a worker's reply; replace the worker if it died or took too long."""
        worker = self.workers[number]
        if worker.connection.poll(0):
            reply = worker.receive()
        else:
            worker.end()
            reply = {"failed": "hang", "words": f"took longer than {seconds:.3g} s", "gone": True}
        if reply.get("gone"):
            self.workers[number] = self._fork()
        return reply


def _serve_in_thread(start: Callable[[], Handlers], memory: int | None, connection: Connection) -> int:
    """Serve in a new thread, for which TVM starts threads: those of the parent are lost in the fork."""
    codes = [1]

    def serve() -> None:
        codes[0] = _serve(start, memory, connection)

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()
    return codes[0]


def _serve(start: Callable[[], Handlers], memory: int | None, connection: Connection) -> int:
    """Answer messages until the other end is closed; return the exit code."""
    try:
        connection.send_bytes(b"ready")
        if memory is not None:
            _limit_memory(memory)
        handlers = start()
        while True:
            message = json.loads(connection.recv_bytes())
            reply = _answer(handlers[message.pop("do")], message)
            connection.send_bytes(json.dumps(reply).encode())
    except (EOFError, OSError):
        return 0


def _answer(handler: Callable[..., Reply], arguments: Mapping[str, Any]) -> Reply:
    try:
        return handler(**arguments)
    except RequestFailed as failed:
        return {"failed": failed.kind, "words": failed.words}
    except Exception as error:
        return {"failed": "run", "words": last_line(error)}


def last_line(error: BaseException) -> str:
    """Return an error's class and the last line of its message: TVM quotes code before the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__
    return message[:MOST_CHARACTERS]


def _limit_memory(more: int) -> None:
    """Limit further allocations to ``more`` bytes, so that a candidate that needs more fails alone."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    allocated = int(fields["VmData"].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (allocated + more, allocated + more))
