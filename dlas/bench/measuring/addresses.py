"""Where code, data and the stack of a process are: at the same addresses each time, or at random ones.

Some kernels take more than a tenth longer at one address than at another.  Children have the addresses of the
process that they were forked from, so that random ones make a whole sweep of such kernels faster or slower
than the next one (``experiments/two-runs``).  The first thread's stack begins behind the environment and the
arguments of its process, whose lengths nothing fixes, so that programs are measured in another thread.

References
----------
Mytkowicz, Diwan, Hauswirth, Sweeney: Producing wrong data without doing anything obviously wrong. ASPLOS
2009.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
FIXED = 0x0040000
"""Linux's flag of processes whose addresses are not random, ``ADDR_NO_RANDOMIZE``."""
ASK = 0xFFFFFFFF
"""What ``personality`` takes to tell the flags and change none."""

Addresses = Literal["fixed", "random"]


@contextmanager
def fixed() -> Iterator[bool]:
    """Have programs that are started meanwhile at the same addresses each time.

    Yields
    ------
    bool
        Whether the system allows it, as some containers do not; otherwise they are at random ones.
    """
    if sys.platform != "linux":
        yield False
        return
    personality = ctypes.CDLL(None).personality
    flags = personality(ASK)
    allowed = personality(flags | FIXED) >= 0
    try:
        yield allowed
    finally:
        personality(flags)


def on_own_stack(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Have a function run in a thread of its own, whose stack begins with a page."""

    @functools.wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with ThreadPoolExecutor(max_workers=1) as thread:
            return thread.submit(function, *arguments, **named).result()

    return run


def addresses() -> Addresses | None:
    """Return where this process is; None where the system does not tell."""
    try:
        flags = int(Path("/proc/self/personality").read_text(), 16)
        never = Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0"
    except (OSError, ValueError):
        return None
    return "fixed" if flags & FIXED or never else "random"
