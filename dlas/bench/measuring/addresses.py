"""Where code and data of a process are: at the same addresses each time, or at random ones.

Some kernels take more than a tenth longer at one address than at another.  Children have the addresses of the
process that they were forked from, so that random ones make a whole sweep of such kernels faster or slower
than the next one (``experiments/two-runs``).

References
----------
Mytkowicz, Diwan, Hauswirth, Sweeney: Producing wrong data without doing anything obviously wrong. ASPLOS
2009.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

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


def addresses() -> Addresses | None:
    """Return where this process is; None where the system does not tell."""
    try:
        flags = int(Path("/proc/self/personality").read_text(), 16)
        never = Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0"
    except (OSError, ValueError):
        return None
    return "fixed" if flags & FIXED or never else "random"
