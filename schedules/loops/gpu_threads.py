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
    """Return how many threads a block of a GPU may have.

    TVM has two names for it: where a target is described with one, TVM's default for the other counts not.
    """
    described, names = dict(target.description), ("max_threads_per_block", "max_num_threads")
    limits = described if any(name in described for name in names) else tvm.target.Target(described).attrs
    return min(int(limits[name]) for name in names if name in limits)
