"""Checks in child processes: a crash, a hang or a lack of memory is a finding like a wrong result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import dlas.testing
from dlas.bench.processes.events import ChildEnd, Task
from dlas.bench.processes.interface import Channel, Runner
from dlas.bench.processes.outcome import signal_name
from dlas.stack import Conv
from dlas.sweep.study import parts

SECONDS = 3600.0
MEMORY_BYTES = 16 * 2**30
"""Limits of a check."""
AT_A_TIME = 2
SHAPES = ("name", "n", "c", "h", "w", "k", "r", "s")
PLACE = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
"""A line of the stack that a crash leaves in its log."""


@dataclass(frozen=True)
class CheckResult:
    """How a check ended."""

    what: str
    """The convolution's name, or the part's."""
    shapes: str
    """The convolution's shapes; empty for other parts."""
    outcome: Literal["right", "declined", "wrong"]
    reason: str = ""
    """Why it is not right."""


@dataclass(frozen=True)
class ChildCheck:
    """What one child checks: the arguments of :func:`run_check`, and how a finding names it."""

    arguments: Mapping[str, Any]
    what: str
    shapes: str = ""

    def task(self) -> Task:
        """Return the child's task."""
        return Task(f"{__name__}:run_check", dict(self.arguments), SECONDS)


def checks(axis: str, name: str, options: Mapping[str, Any]) -> list[ChildCheck]:
    """Return the checks of a part: one for each convolution for an algorithm, and else a single one."""
    arguments = {"axis": axis, "name": name, "options": dict(options)}
    if axis != "algorithm":
        return [ChildCheck(arguments, name)]
    from dlas.testing.cases import CASES

    return [
        ChildCheck({**arguments, "case": case.conv.name}, case.conv.name, ", ".join(shapes(case.conv)))
        for case in CASES
    ]


def findings(todo: Sequence[ChildCheck], runner: Runner, logs: Path) -> Iterator[CheckResult]:
    """Yield the finding of every check, in the order in which they end.

    Parameters
    ----------
    runner : Runner
        Runs each check in a child of its own.
    logs : Path
        A folder for the output of the checks.
    """
    waiting, running = list(enumerate(todo)), dict[int, tuple[ChildCheck, Path]]()
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            number, check = waiting.pop(0)
            log = logs / f"{number}.log"
            running[runner.start([check.task()], log=log, memory=MEMORY_BYTES)] = check, log
        for event in runner.events(1.0):
            if isinstance(event, ChildEnd):
                yield _finding(*running.pop(event.job), event)


def run_check(
    axis: str, name: str, options: Mapping[str, Any], channel: Channel, case: str | None = None
) -> str | None:
    """Check a part, or an algorithm on one convolution; return the reason if it declines it.

    Raises
    ------
    AssertionError
        If the part does not keep its contract.
    """
    part = parts.find(axis, name).make(options)
    if case is None:
        getattr(dlas.testing, f"check_{axis}")(part)
        return None
    from dlas.testing.algorithms import check_case
    from dlas.testing.cases import CASES

    (chosen,) = [one for one in CASES if one.conv.name == case]
    return check_case(part, chosen)


def shapes(conv: Conv) -> Iterator[str]:
    """Yield a convolution's shapes, and what is unusual about it."""
    yield f"input {conv.n}x{conv.c}x{conv.h}x{conv.w}"
    yield f"weight {conv.k}x{conv.c // conv.groups}x{conv.r}x{conv.s}"
    for field in fields(conv):
        value = getattr(conv, field.name)
        if field.name not in SHAPES and value != field.default:
            yield f"{field.name} {value}"


def _finding(check: ChildCheck, log: Path, end: ChildEnd) -> CheckResult:
    if end.complete:
        (reason,) = end.results
        return CheckResult(check.what, check.shapes, "declined" if reason else "right", reason or "")
    if end.raised is not None:
        # The message names the convolution, as the finding does.
        reason = end.raised.text.rpartition(f" on {check.what!r}: ")[2]
    elif end.stopped == "timeout":
        reason = f"took longer than {SECONDS:g} s"
    elif end.stopped == "memory":
        reason = f"used more than {MEMORY_BYTES / 2**30:.3g} GiB of memory"
    else:
        ending = f"killed by {signal_name(-end.exit)}" if end.exit < 0 else f"left with exit code {end.exit}"
        reason = ending + _place(log)
    return CheckResult(check.what, check.shapes, "wrong", reason)


def _place(log: Path) -> str:
    """Return where a child crashed: the innermost Python function in its log."""
    found = PLACE.search(log.read_text(errors="replace")) if log.exists() else None
    return f" in {found['function']} ({found['file']}:{found['line']})" if found else ""
