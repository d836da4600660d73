"""Threads of a GPU: how many work together, and how many a block has."""

from __future__ import annotations

import tvm

from dlas.stack import Target

WARP = 32
"""Threads that run in lockstep."""
FEWEST, USUAL, MOST = 64, 256, 512
"""Fewest, usual and most threads of a block, where there is work for so many."""
BUSY = 2**16
"""Active threads that hide memory latency on a large GPU."""


def most_threads(target: Target) -> int:
    """Return how many threads a block of a GPU may have."""
    limits = tvm.target.Target(dict(target.description)).attrs
    return int(limits.get("max_threads_per_block", limits["max_num_threads"]))
