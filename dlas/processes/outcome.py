"""How a step ended, in the words of a row."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass
from typing import Any

MOST_CHARACTERS = 2000
FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFull(Exception):
    """There is no room to write; nobody's result, so the sweep stops and can be resumed."""


@dataclass(frozen=True)
class Outcome:
    """What became of a step.

    Parameters
    ----------
    status : str
        One of :data:`dlas.rows.results.STATUSES`.
    reason : str or None
        Why it is not ``ok``.
    corrupt : bool
        Whether it failed over a damaged or vanished artifact, which can be made again.
    """

    status: str
    reason: str | None = None
    corrupt: bool = False


OK = Outcome("ok")


def failure(step: str, end: dict[str, Any], seconds: float, memory: int) -> Outcome:
    """Return what became of a step that gave no result.

    Parameters
    ----------
    step : str
        The step's name, for the reason.
    end : dict
        The event ``end`` of :class:`dlas.processes.server.Server`.
    seconds, memory : float, int
        The limits that the step ran under.

    Raises
    ------
    DiskFull
    """
    if end["stopped"] == "timeout":
        return Outcome("timeout", f"{step} took longer than {seconds:g} s")
    if end["stopped"] == "memory":
        return Outcome("failed", f"{step} used more than {memory / 2**30:.3g} GiB of memory")
    if end["error"] is not None:
        return _raised(step, end["error"])
    if end["exit"] < 0:
        return Outcome("failed", f"{step} was killed by {signal_name(-end['exit'])}")
    return Outcome("failed", f"{step} left with exit code {end['exit']} and no result")


def _raised(step: str, told: dict[str, Any]) -> Outcome:
    """Classify an exception by its own and its base classes' names."""
    if told["errno"] in FULL:
        raise DiskFull(told["text"])
    text = told["text"].strip()[:MOST_CHARACTERS]
    if "Unsupported" in told["kinds"]:
        return Outcome("unsupported", text)
    if "WrongOutput" in told["kinds"]:
        return Outcome("wrong", text)
    if "MemoryError" in told["kinds"]:
        return Outcome("failed", f"{step} ran out of memory: {text}")
    return Outcome(
        "failed", f"{step}: {told['kinds'][0]}: {text}", corrupt="CorruptArtifact" in told["kinds"]
    )


def signal_name(number: int) -> str:
    """Return a signal's name, and what it usually means."""
    said = {
        signal.SIGSEGV: "SIGSEGV (segmentation fault)",
        signal.SIGABRT: "SIGABRT (abort)",
        signal.SIGKILL: "SIGKILL (by hand, or by the system, short of memory)",
    }
    try:
        return said.get(signal.Signals(number), signal.Signals(number).name)
    except ValueError:
        return f"signal {number}"
