"""Operators on a GPU: TVM's default schedules, or one thread for each output element."""

from __future__ import annotations

import contextlib

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import dlight

from dlas.schedules.loops.transformations import bind
from dlas.stack import Target


def schedule_for_gpu(function: tirx.PrimFunc, target: Target) -> tirx.PrimFunc:
    """Return an operator with its loops bound to a GPU's threads, as far as its loops allow."""
    for rule in (_default, _thread_a_point):
        with contextlib.suppress(Exception):  # where TVM refuses a schedule, the simpler one is tried
            scheduled = rule(function, target)
            if on_threads(scheduled):
                return scheduled.with_attr("tirx.is_scheduled", True)
    return function


def on_threads(function: tirx.PrimFunc) -> bool:
    """Whether every stage of a function runs on a GPU's threads.

    TVM silently runs the others on the host, where they would access the GPU's memory.
    """
    return _is_bound(function.body)


def _is_bound(body: tirx.Stmt) -> bool:
    if isinstance(body, s_tir.SBlockRealize):
        return _is_bound(body.block.body)
    if isinstance(body, tirx.SeqStmt):
        return all(map(_is_bound, body.seq))
    bound = isinstance(body, tirx.AllocBuffer | tirx.DeclBuffer)

    def visit(loop: tirx.For) -> None:
        nonlocal bound
        bound |= loop.kind == tirx.ForKind.THREAD_BINDING

    tvm_ffi.structural_walk(body, (tirx.For, visit))
    return bound


def _default(function: tirx.PrimFunc, target: Target) -> tirx.PrimFunc:
    """Apply DLight's rules for matrix products, reductions and everything else."""
    rules = dlight.gpu
    order = (rules.Matmul(), rules.GEMV(), rules.Reduction(), rules.GeneralReduction(), rules.Fallback())
    with tvm.target.Target(dict(target.description)):
        return dlight.ApplyDefaultSchedule(*order)(tvm.IRModule({"main": function}))["main"]


def _thread_a_point(function: tirx.PrimFunc, target: Target) -> tirx.PrimFunc:
    """Compute each element of each stage by its own thread, with all inner loops serial."""
    schedule = s_tir.Schedule(function)
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        points = [axis for axis in schedule.get(block).iter_vars if axis.iter_type == tirx.IterVar.DataPar]
        bind(schedule, block, len(points))
    return schedule.mod["main"]
