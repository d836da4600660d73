"""One common schedule for every operator that is not a convolution.

TVM has no schedules for CPUs: pooling, additions and linear layers would run
on one thread, one element at a time, and spoil every comparison of the
convolutions beside them.  Here outer loops become parallel and inner ones
vectors, for any loop nest; what a rule cannot handle keeps a simpler form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import dlight

from dlas.stack import Target

WIDEST = 64
"""Elements of a vectorised loop, at most: four vectors of AVX-512."""
SMALLEST_PARALLEL = 16384
"""Elements (points times terms of a sum) below which starting threads costs more than it saves."""
REDUCTION = 2
"""TVM's number for a reduction axis."""


def schedule_operators(module: Any, target: Target) -> Any:
    """Return ``module`` with every PrimFunc scheduled that is not yet; never fails.

    Parameters
    ----------
    module : tvm.IRModule
        PrimFuncs with the attribute ``tirx.is_scheduled`` are left alone.
    target : Target
    """
    if target.description["kind"] != "llvm":
        return _schedule_for_gpu(module, target)
    scheduled = tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc) and not is_scheduled(function):
            scheduled.update_func(variable, schedule_operator(function))
    return scheduled


def is_scheduled(function: Any) -> bool:
    """Whether a PrimFunc's loops are final."""
    return bool(function.attrs is not None and function.attrs.get("tirx.is_scheduled", False))


def schedule_operator(function: Any) -> Any:
    """Return a CPU operator parallel outside and vectorised inside, as far as its loops allow."""
    schedule = s_tir.Schedule(function)
    _inline(schedule)
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        name = schedule.get(block).name_hint
        for rule in (_sum_by_lanes, _vectorise, _parallelise):
            attempt = schedule.copy()
            if _succeeds(rule, attempt, name):
                schedule = attempt
                break
    return schedule.mod["main"].with_attrs({"tirx.is_scheduled": True})


def _succeeds(rule: Callable[[Any, Any], bool], schedule: Any, name: str) -> bool:
    """Apply a rule to the block ``name``; a loop nest that TVM refuses to transform is no error here."""
    try:
        return rule(schedule, schedule.get_sblock(name))
    except (s_tir.ScheduleError, tvm.error.InternalError, ValueError, IndexError):
        return False


def _schedule_for_gpu(module: Any, target: Target) -> Any:
    rules = dlight.gpu
    with tvm.target.Target(dict(target.description)):
        return dlight.ApplyDefaultSchedule(
            rules.Matmul(), rules.GEMV(), rules.Reduction(), rules.GeneralReduction(), rules.Fallback()
        )(module)


def _inline(schedule: Any) -> None:
    """Inline every elementwise stage into its readers.

    A border (a stage that chooses) stays a stage of its own where a sum or a
    maximum reads it: choosing once a term would keep the reader from vectors.
    """
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in blocks[:-1]:
        readers = schedule.get_consumers(block)
        if _chooses(schedule.get(block)) and any(_reduces(schedule.get(reader)) for reader in readers):
            continue
        try:
            schedule.compute_inline(block)
        except s_tir.ScheduleError:
            continue


def _chooses(block: Any) -> bool:
    """Whether a block's body picks between values by position."""
    found = []

    def visit(call: Any) -> None:
        found.append(call.op.same_as(tvm.ir.Op.get("prim.if_then_else")))

    tvm_ffi.structural_walk(block.body, (tvm.ir.Call, visit))
    return any(found)


def _reduces(block: Any) -> bool:
    return any(axis.iter_type == REDUCTION for axis in block.iter_vars)


def _loops(schedule: Any, block: Any) -> tuple[list[Any], list[Any]]:
    """Return the loops over points and those over terms, those of one pass left out.

    Raises
    ------
    ValueError
        If loops and axes are not one to one.
    """
    axes, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    if len(axes) != len(loops):
        raise ValueError("loops and axes are not one to one")
    points, terms = [], []
    for axis, loop in zip(axes, loops, strict=True):
        if _extent(schedule, loop) > 1:
            (terms if axis.iter_type == REDUCTION else points).append(loop)
    return points, terms


def _extent(schedule: Any, loop: Any) -> int:
    return int(schedule.get(loop).extent)


def _work(schedule: Any, loops: list[Any]) -> int:
    return math.prod(_extent(schedule, loop) for loop in loops)


def _share(schedule: Any, loops: list[Any], work: int) -> None:
    """Spread the outermost loops over threads if there is enough to do.

    To be called before a reduction is decomposed: TVM refuses it afterwards.
    """
    if loops and work >= SMALLEST_PARALLEL:
        schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def width(extent: int) -> int:
    """Return the longest vectorised part of a loop that divides it, whole vectors preferred."""
    divisors = [d for d in range(1, WIDEST + 1) if extent % d == 0]
    return max(divisors, key=lambda d: (d % 16 == 0, d % 8 == 0, d % 4 == 0, d))


def _parallelise(schedule: Any, block: Any) -> bool:
    """Only spread the outer points over threads."""
    points, terms = _loops(schedule, block)
    if terms:
        schedule.reorder(*points, *terms)
    _share(schedule, points, _work(schedule, points + terms))
    if terms:
        schedule.decompose_reduction(block, terms[0])
    return True


def _vectorise(schedule: Any, block: Any) -> bool:
    """Spread outer points over threads and make neighbouring points one vector."""
    points, terms = _loops(schedule, block)
    if not points or (terms and not _neighbours_read_neighbours(schedule, block)):
        return False
    work = _work(schedule, points + terms)
    outer, inner = schedule.split(points[-1], [None, width(_extent(schedule, points[-1]))])
    schedule.reorder(*points[:-1], outer, *terms, inner)
    _share(schedule, [*points[:-1], outer], work)
    schedule.vectorize(inner)
    if terms:
        start = schedule.decompose_reduction(block, terms[0])
        schedule.vectorize(schedule.get_loops(start)[-1])
    return True


def _neighbours_read_neighbours(schedule: Any, block: Any) -> bool:
    """Whether the last axis of points moves along the last dimension of an input of a reduction."""
    node = schedule.get(block)
    extents = {axis.var: int(axis.dom.extent) for axis in node.iter_vars if axis.iter_type != REDUCTION}
    moving = [variable for variable, extent in extents.items() if extent > 1]
    return any(_reads_along(read, moving[-1:]) for read in node.reads)


def _reads_along(read: Any, variables: list[Any]) -> bool:
    """Whether the last index of a read moves with one of ``variables``."""
    used = tirx.analysis.undefined_vars(read.region[-1].min) if len(read.region) else []
    return any(one.same_as(other) for one in used for other in variables)


def _sum_by_lanes(schedule: Any, block: Any) -> bool:
    """Turn a long sum over neighbours (a mean over h and w) into one sum a lane, then add the lanes."""
    points, terms = _loops(schedule, block)
    if not terms or _neighbours_read_neighbours(schedule, block):
        return False
    length, work = _work(schedule, terms), _work(schedule, points + terms)
    lanes = next((count for count in (16, 8, 4) if length % count == 0), 0)
    if not lanes or length < 4 * lanes:
        return False
    flat = schedule.fuse(*terms) if len(terms) > 1 else terms[0]
    _, lane = schedule.split(flat, [None, lanes])
    partial = schedule.rfactor(lane, -1)
    outer = schedule.get_loops(block)[:-1]
    if points:
        schedule.compute_at(partial, outer[-1])
        lane, term = schedule.get_loops(partial)[-2:]
        schedule.reorder(term, lane)
    _share(schedule, outer, work)
    term, lane = schedule.get_loops(partial)[-2:]
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(partial, term)
    schedule.vectorize(schedule.get_loops(start)[-1])
    schedule.decompose_reduction(block, schedule.get_loops(block)[-1])
    return True
