"""The C library's allocator, set so that two equal runs hold equal memory, or take equal time.

By default glibc decides by the blocks freed so far which ones it maps and returns to the system, and gives
threads arenas of their own: what a process holds depends on its history.  Where memory is measured, every
block of :data:`MAPPED_BYTES` or more is a mapping of its own, which ends when it is freed.  Where time is,
freed blocks may stay with the process: each page of a new mapping costs a fault when it is first written.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from dlas.errors import Unsupported

MAPPED_BYTES = 64 * 2**10
"""Smallest block with a mapping of its own; smaller ones share the heap."""
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, ARENA_MAX = -1, -2, -3, -8
"""Parameters of glibc's ``mallopt``, from ``malloc.h``."""
REPEATABLE = {MMAP_THRESHOLD: MAPPED_BYTES, TRIM_THRESHOLD: 0, TOP_PAD: 0, ARENA_MAX: 1}
USUAL = {MMAP_THRESHOLD: 32 * 2**20, TRIM_THRESHOLD: 64 * 2**20, TOP_PAD: 128 * 2**10, ARENA_MAX: 0}
"""Where glibc's own adjustment ends in a process that frees large blocks; once set, it adjusts no more."""
KEPT = {MMAP_THRESHOLD: 2**30, TRIM_THRESHOLD: 2**31 - 1}
"""Where freed blocks below a GiB stay with the process, for those that come next."""
SET_THP_DISABLE = 41
"""Option of ``prctl``: no huge pages in this process."""

_measured: list[bool] = []
"""Not empty while memory is measured."""


def keep_freed() -> None:
    """Keep freed blocks in this process from now on; where its memory is measured, nothing changes.

    Raises
    ------
    Unsupported
        If the C library's allocator cannot be set.
    """
    if not _measured and (reason := _set(KEPT)):
        raise Unsupported(f"allocator 'pinned': {reason}")


@contextmanager
def kept() -> Iterator[None]:
    """Keep freed blocks in this process while the context lasts, if the C library's allocator can be set."""
    _set(KEPT)
    try:
        yield
    finally:
        _set(USUAL)
        release()


@contextmanager
def repeatable() -> Iterator[str | None]:
    """Set the allocator while the context lasts, in a process of its own; yield what cannot be set.

    Yields
    ------
    str or None
        Why memory may differ between equal runs; None where everything is set.
    """
    _measured.append(True)
    missing = [reason for reason in (_set(REPEATABLE), _huge_pages(False), _replaced()) if reason]
    try:
        yield "; ".join(missing) or None
    finally:
        _measured.pop()
        _set(USUAL)
        _huge_pages(True)


def release() -> None:
    """Return freed memory to the system: unreachable objects, and the heap's free pages."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _set(parameters: dict[int, int]) -> str | None:
    """Set parameters of glibc's allocator; return why that fails."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return "this C library is not glibc: its allocator cannot be set"
    refused = [name for name, value in parameters.items() if not mallopt(name, value)]
    return f"mallopt refuses parameter {refused[0]}" if refused else None


def _huge_pages(allowed: bool) -> str | None:
    """Allow this process huge pages, or not; return why that fails."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is None or prctl(SET_THP_DISABLE, int(not allowed), 0, 0, 0):
        return "huge pages cannot be switched off"
    return None


def _replaced() -> str | None:
    """Return that another allocator may have been loaded in place of the C library's."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    return f"LD_PRELOAD names another allocator: {preloaded}" if "malloc" in preloaded else None
