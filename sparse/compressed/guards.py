"""Loops with data-dependent bounds, which are static until the kernel has been scheduled.

TVM schedules only loops of constant length.  A loop over the nonzeros of a row is
therefore written up to the longest row possible, with a guard inside; after scheduling,
the pass here turns the guard into the loop's bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorRegion
from tvm.ir.transform import PassContext

Axis = tuple[tirx.IterVar, Expr]
"""An axis of a block and its value in terms of the loops."""


@tirx.transform.prim_func_pass(opt_level=0)
def end_loops_early(function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext) -> tirx.PrimFunc:
    """Turn ``for j in range(most): if j < n: ...`` into ``for j in range(n): ...`` in blocks."""
    return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.For, _ended_early)]))


def _ended_early(loop: tirx.For) -> tirx.Stmt:
    """Return a loop with its guard as its bound; the loop itself if it has none, or one that varies inside.

    If the block initialises its reduction in the first iteration, that moves before the loop.
    """
    nest = [loop]
    while isinstance(nest[-1], tirx.For):
        nest.append(nest[-1].body)
    *loops, inside = nest
    if not isinstance(inside, s_tir.SBlockRealize) or (end := _guard(inside, loop)) is None:
        return loop
    block = inside.block
    end = substituted(end, [(axis.var, value) for axis, value in bindings(inside)])
    if _reads_any(end, [nested.loop_var for nested in loops]):
        return loop
    ended = _loop(loop, end, _nest(loops[1:], inside, block.reads, block.body.then_case))
    if block.init is None:
        return ended
    return tirx.SeqStmt([_start(loops[1:], inside, loop.loop_var), ended])


def _start(loops: list[tirx.For], realize: s_tir.SBlockRealize, term: tirx.Var) -> tirx.Stmt:
    """Return loops that initialise the reduction: a loop without iterations would not."""
    block = realize.block
    points = [(axis, value) for axis, value in bindings(realize) if not value.same_as(term)]
    start = _nest(loops, realize, [], block.init, points)
    defined = [loop.loop_var for loop in loops] + [axis.var for axis, _ in points]
    return substituted(start, [(variable, tirx.Var(variable.name, variable.ty)) for variable in defined])


def _nest(
    loops: list[tirx.For],
    realize: s_tir.SBlockRealize,
    reads: Sequence[TensorRegion],
    body: tirx.Stmt,
    points: list[Axis] | None = None,
) -> tirx.Stmt:
    """Return loops around a copy of a block with another body and, if given, other axes."""
    block, kept = realize.block, bindings(realize) if points is None else points
    axes, values = ([binding[i] for binding in kept] for i in (0, 1))
    rest = block.alloc_buffers, block.match_buffers, block.annotations
    changed = s_tir.SBlock(axes, reads, block.writes, block.name_hint, body, None, *rest)
    nest = s_tir.SBlockRealize(values, realize.predicate, changed)
    for loop in reversed(loops):
        nest = _loop(loop, loop.extent, nest)
    return nest


def _loop(like: tirx.For, extent: Expr, body: tirx.Stmt) -> tirx.For:
    return tirx.For(like.loop_var, like.min, extent, like.kind, body, like.thread_binding, like.annotations)


def bindings(realize: s_tir.SBlockRealize) -> list[Axis]:
    """Return the axes of a block, each with its value."""
    return list(zip(realize.block.iter_vars, realize.iter_values, strict=True))


def _guard(realize: s_tir.SBlockRealize, loop: tirx.For) -> Expr | None:
    """Return the bound that a block's body tests the loop's axis against, or None."""
    body = realize.block.body
    if not isinstance(body, tirx.IfThenElse) or body.else_case is not None:
        return None
    test = body.condition
    for axis, value in bindings(realize):
        if isinstance(test, tirx.LT) and test.a.same_as(axis.var) and value.same_as(loop.loop_var):
            return test.b
    return None


def substituted(expression: Expr | tirx.Stmt, values: list[tuple[tirx.Var, Expr]]) -> Expr | tirx.Stmt:
    """Return an expression with variables replaced by values."""

    def value(variable: tirx.Var) -> Expr:
        return next((new for old, new in values if old.same_as(variable)), variable)

    return tvm_ffi.structural_map(expression, [(tirx.Var, value)])


def _reads_any(expression: Expr | tirx.Stmt, variables: list[tirx.Var]) -> bool:
    """Whether an expression names one of the variables."""
    read: list[tirx.Var] = []
    tvm_ffi.structural_walk(expression, (tirx.Var, read.append))
    return any(name.same_as(variable) for name in read for variable in variables)
