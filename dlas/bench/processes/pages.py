"""Joining pages of a process, so that a fork of it copies hundreds of entries and not a hundred thousand."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

HUGE_BYTES = 2**21
"""Pages are joined to pages of this size."""
COLLAPSE = 25
"""Linux's ``MADV_COLLAPSE``, since 6.1: it joins pages that are there, and changes nothing for later ones."""


def join_pages() -> None:
    """Join this process's own pages; nothing where the system does not."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            first, end = (int(bound, 16) for bound in span.split("-"))
            first, end = -(-first // HUGE_BYTES) * HUGE_BYTES, end // HUGE_BYTES * HUGE_BYTES
            if "w" in rights and "p" in rights and first < end:
                advise(first, end - first, COLLAPSE)
