"""Messages between a sweep, its server and the children that run steps, encoded as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

TAG = "dlas.bench.processes.events"
"""Marks an object of JSON as one of the classes below, and names it."""


@dataclass(frozen=True)
class Task:
    """A function for a child to call."""

    function: str
    """``package.module:function``; called with the arguments as keywords and ``channel``; its result must be
    JSON-able.
    """
    arguments: dict[str, Any]
    """JSON-able."""
    seconds: float
    """Time limit."""
    imports: Sequence[str] = ()
    """Slow imports that it needs: the server imports them once for all children."""
    makes: Sequence[str] = ()
    """Kind and key of the artifact that it makes, on any machine; empty where it makes none so."""
    needs: Sequence[Sequence[str]] = ()
    """Kinds and keys of the artifacts that it makes it from."""


@dataclass(frozen=True)
class Start:
    """From the sweep: run tasks one after the other in a child."""

    job: int
    """The number that all events of these tasks carry."""
    tasks: Sequence[Task]
    """They end with the first one that fails."""
    log: str
    """The file for the child's output."""
    memory: int
    """Bytes that the child and its descendants may use."""
    threads: int
    """Threads of numerical libraries, unless a task sets another number."""
    loaded: Sequence[str]
    """Modules of this package that the sweep has imported since the last start."""


@dataclass(frozen=True)
class GiveTurn:
    """From the sweep: let a child that asked for its next turn continue."""

    job: int


@dataclass(frozen=True)
class Pause:
    """From the sweep: stop a child and the clock of its time limit."""

    job: int


@dataclass(frozen=True)
class Resume:
    """From the sweep: let a paused child continue."""

    job: int


@dataclass(frozen=True)
class Said:
    """From a child: a line of progress."""

    job: int
    text: str


@dataclass(frozen=True)
class TurnRequest:
    """From a child: it waits for its next turn."""

    job: int


@dataclass(frozen=True)
class TaskReturn:
    """From a child: a task's JSON-able result."""

    value: Any


@dataclass(frozen=True)
class TaskError:
    """From a child: a task ended with an exception."""

    name: str
    """The exception's class."""
    text: str
    """Its message."""
    status: str = "failed"
    """The status of the point's row."""
    cause: Literal["code", "memory", "disk", "artifact", "device"] = "code"
    """Resource that ran out, was damaged or cannot be reached; ``code`` for other errors."""
    place: str = ""
    """File and line of an error in the code, ``mine.py:12``; empty where they are not known."""


@dataclass(frozen=True)
class TaskEnd:
    """A task has returned its result, which comes with :class:`ChildEnd`."""

    job: int
    task: int
    """Its place among the job's tasks."""
    seconds: float
    waited: float
    """How long it worked; how long it was paused or waited for its turn."""


@dataclass(frozen=True)
class ChildEnd:
    """From the server: a child has ended."""

    job: int
    exit: int
    """Its exit code; the negative number of the signal if one killed it."""
    results: Sequence[Any] = ()
    """Results of the tasks that succeeded."""
    seconds: Sequence[float] = ()
    waited: Sequence[float] = ()
    """Of each task that started, how long it worked, and how long it was paused or waited for its turn."""
    stopped: Literal["timeout", "memory"] | None = None
    """The limit that it was killed for."""
    raised: TaskError | None = None
    """The exception that ended the last one."""

    @property
    def complete(self) -> bool:
        """Whether every task that started returned a result."""
        return len(self.seconds) == len(self.results)


Command = Start | GiveTurn | Pause | Resume
Event = Said | TurnRequest | TaskEnd | ChildEnd
"""Messages that a sweep receives."""
Message = Command | Event | TaskReturn | TaskError
CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Task,
        Start,
        GiveTurn,
        Pause,
        Resume,
        Said,
        TurnRequest,
        TaskReturn,
        TaskError,
        TaskEnd,
        ChildEnd,
    )
}


def encode(message: Message) -> bytes:
    """Return a message as JSON.

    Raises
    ------
    TypeError
        If a value cannot be represented in JSON.
    """
    return json.dumps(message, default=_tagged).encode()


def decode(content: bytes) -> Any:
    """Return the message that :func:`encode` wrote."""
    return json.loads(content, object_hook=_rebuilt)


def _tagged(value: object) -> dict[str, Any]:
    if type(value) not in CLASSES.values():
        raise TypeError(f"{type(value).__name__} is not JSON serializable")
    return {TAG: type(value).__name__, **vars(value)}


def _rebuilt(value: dict[str, Any]) -> Any:
    return CLASSES[value.pop(TAG)](**value) if TAG in value else value
