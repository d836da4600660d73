"""Remainder tiles: the last tile of a row is narrower where a tile's width does not divide the row.

TVM tests inside a split loop whether an element lies beyond the end.  A tile stays in registers
only if no such test is left in it, so the loop over tiles gets one branch for whole tiles and one
for the narrower tile.  Both branches have the same depth: LLVM takes a loop that is nested less
deeply than another for one that hardly ever runs, and keeps its sums in memory.
"""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir.transform import PassContext
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

NARROWER = "dlas.last_tile_is_narrower"
"""Annotation of a loop: the iterations that have the same tile in turn, and the tiles of a row."""


def mark_remainder(schedule: Schedule, loop: LoopRV, inside: int, tiles: int) -> None:
    """Note that the last of a row's tiles is narrower than the others.

    Parameters
    ----------
    loop : LoopRV
        Over tiles, perhaps fused with other loops.
    inside : int
        Iterations of the loops that were fused into it further inside.
    tiles : int
        In a row.
    """
    schedule.annotate(loop, NARROWER, [inside, tiles])


@tirx.transform.prim_func_pass(opt_level=0)
def branch_at_remainders(
    function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext
) -> tirx.PrimFunc:
    """Give every loop that :func:`mark_remainder` marked one branch for whole tiles and one for the last."""
    return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.For, _branched)]))


def _branched(loop: tirx.For) -> tirx.For:
    """Return a loop with two copies of its body, or the loop itself where it is not marked."""
    if NARROWER not in loop.annotations:
        return loop
    inside, tiles = map(int, loop.annotations[NARROWER])
    tile = tirx.floormod(tirx.floordiv(loop.loop_var, inside), tiles)
    body = tirx.IfThenElse(tile < tiles - 1, loop.body, loop.body)
    others = {name: value for name, value in loop.annotations.items() if name != NARROWER}
    return tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, others)


REMAINDER_PASSES = (branch_at_remainders, s_tir.transform.ConvertSSA())
"""To run after a schedule that marks loops: copies of a body get variables of their own."""
