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
    """A function for a child to call.

    Parameters
    ----------
    function : str
        ``package.module:function``; called with the arguments as keywords and
        ``channel``; its result must be JSON-able.
    arguments : dict
        JSON-able.
    seconds : float
        Time limit.
    imports : sequence of str
        Slow imports that it needs: the server imports them once for all children.
    """

    function: str
    arguments: dict[str, Any]
    seconds: float
    imports: Sequence[str] = ()


@dataclass(frozen=True)
class Start:
    """From the sweep: run tasks one after the other in a child.

    Parameters
    ----------
    job : int
        The number that all events of these tasks carry.
    tasks : sequence of Task
        They end with the first one that fails.
    log : str
        The file for the child's output.
    memory : int
        Bytes that the child and its descendants may use.
    threads : int
        Threads of numerical libraries, unless a task sets another number.
    """

    job: int
    tasks: Sequence[Task]
    log: str
    memory: int
    threads: int


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
    """From a child: a task ended with an exception.

    Parameters
    ----------
    name : str
        The exception's class.
    text : str
        Its message.
    status : str
        The status of the point's row.
    cause : str
        Resource that ran out, was damaged or cannot be reached; ``code`` for other errors.
    """

    name: str
    text: str
    status: str = "failed"
    cause: Literal["code", "memory", "disk", "artifact", "device"] = "code"


@dataclass(frozen=True)
class TaskEnd:
    """A task has returned its result, which comes with :class:`ChildEnd`.

    Parameters
    ----------
    job : int
    task : int
        Its place among the job's tasks.
    seconds, waited : float
        How long it worked; how long it was paused or waited for its turn.
    """

    job: int
    task: int
    seconds: float
    waited: float


@dataclass(frozen=True)
class ChildEnd:
    """From the server: a child has ended.

    Parameters
    ----------
    job : int
    exit : int
        Its exit code; the negative number of the signal if one killed it.
    stopped : str or None
        The limit that it was killed for.
    results : sequence
        Results of the tasks that succeeded.
    seconds, waited : sequence of float
        Of each task that started, how long it worked, and how long it was paused or waited for its turn.
    raised : TaskError or None
        The exception that ended the last one.
    """

    job: int
    exit: int
    results: Sequence[Any] = ()
    seconds: Sequence[float] = ()
    waited: Sequence[float] = ()
    stopped: Literal["timeout", "memory"] | None = None
    raised: TaskError | None = None

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
