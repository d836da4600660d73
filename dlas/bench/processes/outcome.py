"""How a step ended, as a row's status and reason."""

from __future__ import annotations

import errno
import os
import signal
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.processes.events import ChildEnd, TaskError
from dlas.errors import PointError, Unreachable

MOST_CHARACTERS = 2000
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_WORDS = tuple(map(os.strerror, FULL))
"""What libraries and linkers say of a full disk in exceptions of their own."""

LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Folders of code that nobody looks for a fault in first."""


class DiskFull(Exception):
    """The disk is full: the sweep stops without writing a row for the point, and can be resumed."""


@dataclass(frozen=True)
class Outcome:
    """How a step ended."""

    status: str
    """One of :data:`dlas.sweep.rows.results.STATUSES`."""
    reason: str | None = None
    """Why it is not ``ok``."""
    corrupt: bool = False
    """Whether it failed because an artifact was damaged or missing; making it again may help."""
    unreachable: bool = False
    """Whether it failed because its device could not be reached, or was lost; the device may come back."""


OK = Outcome("ok")


def failure(step: str, end: ChildEnd, seconds: float, memory: int) -> Outcome:
    """Return the outcome of a step that gave no result.

    Parameters
    ----------
    step : str
        The step's name, for the reason.
    seconds, memory : float, int
        The limits that the step ran under.

    Raises
    ------
    DiskFull
    KeyboardInterrupt
        If somebody interrupted the step's process alone, as ``pkill -INT`` does: the step is not at fault.
    """
    if end.stopped == "timeout":
        return Outcome("timeout", f"{step} took longer than {seconds:g} s")
    if end.stopped == "memory":
        return Outcome(
            "failed", f"the step {step} used more than the limit of {memory / 2**30:.3g} GiB of memory"
        )
    if end.raised is not None:
        return _by_exception(step, end.raised)
    if end.exit == -signal.SIGINT:
        raise KeyboardInterrupt
    if end.exit < 0:
        return Outcome("failed", f"{step} was killed by {signal_name(-end.exit)}")
    return Outcome("failed", f"{step} left with exit code {end.exit} and no result")


def describe_exception(error: BaseException) -> TaskError:
    """Return the event that reports the exception that ended a step."""
    name = type(error).__name__
    text = str(error) or name
    if isinstance(error, Unreachable):
        return TaskError(name, text, cause="device")
    if isinstance(error, PointError):
        return TaskError(name, text, error.status, "artifact" if error.damaged_artifact else "code")
    if isinstance(error, MemoryError):
        return TaskError(name, text, cause="memory")
    if (isinstance(error, OSError) and error.errno in FULL) or any(words in text for words in FULL_WORDS):
        return TaskError(name, text, cause="disk")
    return TaskError(name, text, place=_place(error))


def _place(error: BaseException) -> str:
    """Return the file and line of the last call in an own file, such as that of a part; empty without one."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_absolute() and not frame.filename.startswith(LIBRARIES):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return ""


def _by_exception(step: str, error: TaskError) -> Outcome:
    if error.cause == "disk":
        raise DiskFull(error.text)
    text = _line(error.text)[:MOST_CHARACTERS]
    if error.status != "failed":
        return Outcome(error.status, text)
    if error.cause == "device":
        return Outcome("failed", f"{step}: {text}", unreachable=True)
    if error.cause == "memory":
        return Outcome("failed", f"{step} ran out of memory: {text}")
    place = f" ({error.place})" if error.place else ""
    return Outcome("failed", f"{step}: {error.name}: {text}{place}", corrupt=error.cause == "artifact")


def _line(text: str) -> str:
    """Return the line of a message that says what is wrong; the log has all of them.

    Libraries in C++ append the stack behind the first line, and those in Python put it before the last one.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def signal_name(number: int) -> str:
    """Return a signal's name with its usual cause."""
    descriptions = {
        signal.SIGSEGV: "SIGSEGV (segmentation fault)",
        signal.SIGABRT: "SIGABRT (abort)",
        signal.SIGKILL: "SIGKILL (by hand, or by the system, short of memory)",
    }
    try:
        return descriptions.get(signal.Signals(number), signal.Signals(number).name)
    except ValueError:
        return f"signal {number}"
