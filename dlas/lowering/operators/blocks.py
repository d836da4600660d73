"""What a TIR block computes, and which loops are around it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import s_tir, sym, tirx
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

COSTLY = {"cos", "erf", "exp", "log", "pow", "sigmoid", "sin", "tan", "tanh"}
"""Functions that no processor has an instruction for."""
UNKNOWN_STRIDE = 64
"""Stands for the stride of a read that is not linear in the innermost axis: more than any vector."""


def is_costly(block: SBlock) -> bool:
    """Whether a block's body calls one of the ``COSTLY`` functions, or names values as their formulas do."""
    names: list[str] = []
    bound: list[tirx.Let] = []

    def visit(call: tvm.ir.Call) -> None:
        if isinstance(call.op, tvm.ir.Op):
            names.append(call.op.name.rpartition(".")[2])

    tvm_ffi.structural_walk(block.body, [(tvm.ir.Call, visit), (tirx.Let, bound.append)])
    return bool(bound) or not COSTLY.isdisjoint(names)


def branches(block: SBlock, variable: tirx.Var | None = None) -> bool:
    """Whether a block's body has a condition, or one that depends on ``variable``."""
    conditions = []

    def visit(call: tvm.ir.Call) -> None:
        if call.op.same_as(tvm.ir.Op.get("prim.if_then_else")):
            conditions.append(call.args[0])

    tvm_ffi.structural_walk(block.body, (tvm.ir.Call, visit))
    if variable is None:
        return bool(conditions)
    read = [name for condition in conditions for name in tirx.analysis.undefined_vars(condition)]
    return any(name.same_as(variable) for name in read)


def is_reduction(axis: tirx.IterVar) -> bool:
    """Whether an axis runs over the terms of a sum or maximum."""
    return bool(axis.iter_type == tirx.IterVar.CommReduce)


def reduces(block: SBlock) -> bool:
    """Whether a block computes a reduction."""
    return any(map(is_reduction, block.iter_vars))


def has_inner_loops(block: SBlock) -> bool:
    """Whether a block's body is not a single statement."""
    return isinstance(block.body, tirx.For | tirx.SeqStmt | s_tir.SBlockRealize)


def loops_of(schedule: Schedule, block: SBlockRV) -> tuple[list[LoopRV], list[LoopRV]]:
    """Return the spatial loops around a block and its reduction loops, without those of one iteration.

    Raises
    ------
    ValueError
        If loops and axes are not one to one, or if the block has loops inside.
    """
    axes, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    if has_inner_loops(schedule.get(block)):
        raise ValueError("loops inside the block")
    if len(axes) != len(loops):
        raise ValueError("loops and axes are not one to one")
    spatial: list[LoopRV] = []
    reduction: list[LoopRV] = []
    for axis, loop in zip(axes, loops, strict=True):
        if extent(schedule, loop) > 1:
            (reduction if is_reduction(axis) else spatial).append(loop)
    return spatial, reduction


def extent(schedule: Schedule, loop: LoopRV) -> int:
    """Return a loop's length; 2 stands for one that depends on outer loops."""
    length = schedule.get(loop).extent
    return int(length) if isinstance(length, tirx.IntImm) else 2


def iterations(schedule: Schedule, loops: Sequence[LoopRV]) -> int:
    """Return how often the body of nested loops runs."""
    return math.prod(extent(schedule, loop) for loop in loops)


def innermost(block: SBlock) -> tirx.Var | None:
    """Return the variable of the innermost spatial axis, or None."""
    axes = [axis for axis in block.iter_vars if not is_reduction(axis) and int(axis.dom.extent) > 1]
    return axes[-1].var if axes else None


def strides(block: SBlock) -> set[int]:
    """Return by how much each read moves along its last dimension from one output to the next."""
    variable = innermost(block)
    steps = set()
    for read in block.reads:
        if variable is not None and len(read.region):
            coefficients = sym.pattern.detect_linear_equation(read.region[-1].min, [variable])
            steps.add(int(coefficients[0]) if len(coefficients) else UNKNOWN_STRIDE)
    return steps
