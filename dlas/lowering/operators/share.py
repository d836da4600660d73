"""Share a CPU operator's outer loops among threads."""

from __future__ import annotations

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.lowering.operators.blocks import is_reduction, iterations, loops_of

SMALLEST_PARALLEL = 16384
"""Elements (outputs times terms of a sum) below which starting threads costs more than it saves."""


def share(schedule: Schedule, loops: list[LoopRV], work: int) -> None:
    """Make a CPU operator's outermost loops one parallel loop if there is enough to do.

    To be called before a reduction is decomposed: TVM refuses it afterwards.

    Parameters
    ----------
    work : int
        Elements: outputs times terms of a sum.
    """
    if loops and work >= SMALLEST_PARALLEL:
        schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def parallelise(schedule: Schedule, block: SBlockRV) -> bool:
    """Only share the outer spatial loops among threads; the innermost loop is left to LLVM."""
    spatial, reduction = loops_of(schedule, block)
    if reduction:
        schedule.reorder(*spatial, *reduction)
    share(schedule, spatial[:-1] or spatial, iterations(schedule, spatial + reduction))
    if reduction:
        schedule.decompose_reduction(block, reduction[0])
    return True


def parallelise_opaque(schedule: Schedule, block: SBlockRV) -> bool:
    """Share the outer spatial loops of a block with loops inside, which is taken to be much work."""
    axes, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    reduced = list(map(is_reduction, axes))
    spatial = loops[: reduced.index(True)] if any(reduced) else loops
    share(schedule, spatial[:-1] or spatial, SMALLEST_PARALLEL)
    return True
