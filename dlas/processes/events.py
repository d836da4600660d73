"""What a sweep, its server and the children that run steps tell each other: JSON on the wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

TAG = "dlas.processes.events"
"""Marks an object of JSON as one of the classes below, and names it."""


@dataclass(frozen=True)
class Task:
    """What a child is to do.

    Parameters
    ----------
    function : str
        ``package.module:function``; called with the arguments as keywords and
        ``channel``, it returns something JSON-able.
    arguments : dict
        JSON-able.
    seconds : float
        How long it may take.
    imports : sequence of str
        Modules that it needs and that take long to import: the server does it once.
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
        The first one that fails is the last.
    log : str
        The file that gets what the child prints.
    memory : int
        Bytes that the child may hold with all it starts.
    threads : int
        What numerical libraries may use until a task says otherwise.
    """

    job: int
    tasks: Sequence[Task]
    log: str
    memory: int
    threads: int


@dataclass(frozen=True)
class GiveTurn:
    """From the sweep: let a child go on that has asked for its next turn."""

    job: int


@dataclass(frozen=True)
class Pause:
    """From the sweep: stop a child, its clock too."""

    job: int


@dataclass(frozen=True)
class Resume:
    """From the sweep: let a paused child go on."""

    job: int


@dataclass(frozen=True)
class Said:
    """From a child: a line of progress."""

    job: int
    text: str


@dataclass(frozen=True)
class TurnAsked:
    """From a child: it stands still until its next turn."""

    job: int


@dataclass(frozen=True)
class Finished:
    """From a child: a task's JSON-able result."""

    value: Any


@dataclass(frozen=True)
class Raised:
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
        What was short or damaged; ``code`` where nothing was.
    """

    name: str
    text: str
    status: str = "failed"
    cause: Literal["code", "memory", "disk", "artifact"] = "code"


@dataclass(frozen=True)
class Ended:
    """From the server: a child is gone.

    Parameters
    ----------
    job : int
    exit : int
        Its exit code; a signal's number, negative, if one killed it.
    stopped : str or None
        The limit that it was killed for.
    results : sequence
        What the tasks returned that got through.
    seconds : sequence of float
        How long each task took that began.
    raised : Raised or None
        The exception that ended the last one.
    """

    job: int
    exit: int
    results: Sequence[Any] = ()
    seconds: Sequence[float] = ()
    stopped: Literal["timeout", "memory"] | None = None
    raised: Raised | None = None

    @property
    def complete(self) -> bool:
        """Whether every task that began gave its result."""
        return len(self.seconds) == len(self.results)


Command = Start | GiveTurn | Pause | Resume
Event = Said | TurnAsked | Ended
"""What a sweep reads."""
Message = Command | Event | Finished | Raised
CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (Task, Start, GiveTurn, Pause, Resume, Said, TurnAsked, Finished, Raised, Ended)
}


def encode(message: Message) -> bytes:
    """Return a message as JSON.

    Raises
    ------
    TypeError
        If it holds something that JSON cannot.
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
