"""Vectorise a long reduction of neighbouring elements, such as a mean over h and w."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import SBlockRV

from dlas.lowering.operators.blocks import iterations, loops_of, strides
from dlas.lowering.operators.share import share

LANES = (16, 8, 4)
"""Partial sums that are kept side by side in a vector, the most first."""
FEWEST_TERMS = 4
"""Terms that each lane must have, so that adding the lanes up costs little."""


def sum_by_lanes(schedule: Schedule, block: SBlockRV) -> bool:
    """Split a reduction into one partial sum a vector lane, then add up the lanes."""
    spatial, reduction = loops_of(schedule, block)
    if not reduction or not strides(schedule.get(block)) <= {0}:
        return False
    length, work = iterations(schedule, reduction), iterations(schedule, spatial + reduction)
    lanes = next((count for count in LANES if length % count == 0), 0)
    if not lanes or length < FEWEST_TERMS * lanes:
        return False
    flat = schedule.fuse(*reduction) if len(reduction) > 1 else reduction[0]
    _, lane = schedule.split(flat, [None, lanes])
    partial = schedule.rfactor(lane, -1)
    outer = schedule.get_loops(block)[:-1]
    if spatial:
        schedule.compute_at(partial, outer[-1])
        lane, term = schedule.get_loops(partial)[-2:]
        schedule.reorder(term, lane)
    share(schedule, outer, work)
    term, lane = schedule.get_loops(partial)[-2:]
    schedule.vectorize(lane)
    initial = schedule.decompose_reduction(partial, term)
    schedule.vectorize(schedule.get_loops(initial)[-1])
    schedule.decompose_reduction(block, schedule.get_loops(block)[-1])
    return True
