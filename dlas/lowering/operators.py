"""One common schedule for every operator that is not a convolution.

TVM has no schedules for CPUs: pooling, additions and linear layers would run
on one thread, one element at a time, and spoil every comparison of the
convolutions beside them.  Here outer loops become parallel and inner ones
vectors, for any loop nest; what a rule cannot handle keeps a simpler form.
"""

from __future__ import annotations

import contextlib
import math

import tvm
import tvm_ffi
from tvm import s_tir, sym, tirx
from tvm.s_tir import SBlock, Schedule
from tvm.s_tir.schedule import LoopRV, SBlockRV

from dlas.errors import Unsupported
from dlas.lowering.gpu import on_threads, schedule_for_gpu
from dlas.stack import Target

WIDEST = 64
"""Elements of a vectorised loop, at most: four vectors of AVX-512."""
WIDEST_STRIDED = 16
"""The same where elements are not next to each other: longer ones are put together one by one."""
SMALLEST_PARALLEL = 16384
"""Elements (points times terms of a sum) below which starting threads costs more than it saves."""
PLENTY = 64
"""Points, each with a row of others, that are enough to share among threads."""
WRITTEN_OUT = 25
"""Terms of a sum or maximum that are written out rather than looped over: a window of 5 by 5."""
COSTLY = {"cos", "erf", "exp", "log", "pow", "sigmoid", "sin", "tan", "tanh"}
"""Functions that TVM computes by a formula."""
REDUCTION = 2
"""TVM's number for a reduction axis."""


def schedule_operators(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module`` with every PrimFunc scheduled that is not yet.

    Parameters
    ----------
    module : tvm.IRModule
        PrimFuncs with the attribute ``tirx.is_scheduled`` are left alone.
    target : Target

    Raises
    ------
    Unsupported
        If a PrimFunc, whoever scheduled it, would not run on the GPU that ``target`` is.
    """
    gpu, scheduled = target.on_gpu, tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions_items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        if not is_scheduled(function):
            function = schedule_for_gpu(function, target) if gpu else schedule_operator(function)
            scheduled.update_func(variable, function)
        if gpu and not on_threads(function):
            raise Unsupported(f"{variable.name_hint} has no schedule for {target.description['kind']}")
    return scheduled


def is_scheduled(function: tirx.PrimFunc) -> bool:
    """Whether a PrimFunc's loops are final."""
    return bool(function.attrs is not None and function.attrs.get("tirx.is_scheduled", False))


def schedule_operator(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a CPU operator parallel outside and vectorised inside, as far as its loops allow."""
    with contextlib.suppress(Exception):  # a loop nest that cannot be scheduled at all runs as it is
        schedule = s_tir.Schedule(function)
        _inline(schedule)
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            schedule = _first_that_works(schedule, schedule.get(block).name_hint)
        return schedule.mod["main"].with_attr("tirx.is_scheduled", True)
    return function


def _first_that_works(schedule: Schedule, name: str) -> Schedule:
    """Return the schedule with the block ``name`` transformed by the first rule that takes it."""
    for rule in (_sum_by_lanes, _vectorise, _parallelise, _only_share):
        attempt = schedule.copy()
        with contextlib.suppress(Exception):  # what TVM refuses, a simpler rule follows
            if rule(attempt, attempt.get_sblock(name)):
                return attempt
    return schedule


def _inline(schedule: Schedule) -> None:
    """Inline elementwise stages into their readers where that costs nothing."""
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    for block in blocks[:-1]:
        readers = [schedule.get(reader) for reader in schedule.get_consumers(block)]
        if not any(_better_apart(schedule.get(block), reader) for reader in readers):
            with contextlib.suppress(s_tir.ScheduleError):
                schedule.compute_inline(block)


def _better_apart(block: SBlock, reader: SBlock) -> bool:
    """Whether a stage should not be computed where it is read.

    A border (a stage that chooses) read by a sum or a maximum would be chosen
    once a term, which also keeps the reader from vectors.  Functions like tanh
    become formulas that name their argument several times, so that one inside
    the other grows exponentially.
    """
    if _reduces(reader):
        return _chooses(block) or _is_costly(block)
    return _is_costly(block) and _is_costly(reader)


def _is_costly(block: SBlock) -> bool:
    """Whether a block's body calls a function that has no instruction of its own."""
    found = []

    def visit(call: tvm.ir.Call) -> None:
        name = call.op.name.rpartition(".")[2] if isinstance(call.op, tvm.ir.Op) else ""
        found.append(name in COSTLY)

    tvm_ffi.structural_walk(block.body, (tvm.ir.Call, visit))
    return any(found)


def _chooses(block: SBlock, variable: tirx.Var | None = None) -> bool:
    """Whether a block's body picks between values by position, or by the position along ``variable``."""
    found = []

    def visit(call: tvm.ir.Call) -> None:
        if call.op.same_as(tvm.ir.Op.get("prim.if_then_else")):
            used = tirx.analysis.undefined_vars(call.args[0])
            found.append(variable is None or any(one.same_as(variable) for one in used))

    tvm_ffi.structural_walk(block.body, (tvm.ir.Call, visit))
    return any(found)


def _reduces(block: SBlock) -> bool:
    return any(axis.iter_type == REDUCTION for axis in block.iter_vars)


def _has_loops(block: SBlock) -> bool:
    return isinstance(block.body, tirx.For | tirx.SeqStmt | s_tir.SBlockRealize)


def _loops(schedule: Schedule, block: SBlockRV) -> tuple[list[LoopRV], list[LoopRV]]:
    """Return the loops over points and those over terms, those of one pass left out.

    Raises
    ------
    ValueError
        If loops and axes are not one to one, or if the block has loops inside.
    """
    axes, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    if _has_loops(schedule.get(block)):
        raise ValueError("loops inside the block")
    if len(axes) != len(loops):
        raise ValueError("loops and axes are not one to one")
    points: list[LoopRV] = []
    terms: list[LoopRV] = []
    for axis, loop in zip(axes, loops, strict=True):
        if _extent(schedule, loop) > 1:
            (terms if axis.iter_type == REDUCTION else points).append(loop)
    return points, terms


def _extent(schedule: Schedule, loop: LoopRV) -> int:
    """Return a loop's length; 2 stands for one that is only known inside other loops."""
    extent = schedule.get(loop).extent
    return int(extent) if isinstance(extent, tirx.IntImm) else 2


def _work(schedule: Schedule, loops: list[LoopRV]) -> int:
    return math.prod(_extent(schedule, loop) for loop in loops)


def share(schedule: Schedule, loops: list[LoopRV], work: int) -> None:
    """Spread a CPU operator's outermost loops over threads if there is enough to do.

    To be called before a reduction is decomposed: TVM refuses it afterwards.

    Parameters
    ----------
    schedule : tvm.s_tir.Schedule
    loops : list of LoopRV
    work : int
        Elements: points times terms of a sum.
    """
    if loops and work >= SMALLEST_PARALLEL:
        schedule.parallel(schedule.fuse(*loops) if len(loops) > 1 else loops[0])


def width(extent: int, widest: int = WIDEST) -> int:
    """Return the longest vectorised part of a loop that divides it, whole vectors preferred."""
    divisors = [d for d in range(1, widest + 1) if extent % d == 0]
    return max(divisors, key=lambda d: (d % 16 == 0, d % 8 == 0, d % 4 == 0, d))


def _parallelise(schedule: Schedule, block: SBlockRV) -> bool:
    """Only spread the outer points over threads; the innermost loop is left to LLVM."""
    points, terms = _loops(schedule, block)
    if terms:
        schedule.reorder(*points, *terms)
    share(schedule, points[:-1] or points, _work(schedule, points + terms))
    if terms:
        schedule.decompose_reduction(block, terms[0])
    return True


def _only_share(schedule: Schedule, block: SBlockRV) -> bool:
    """Spread the outer points of a block with loops inside over threads; it counts as long."""
    axes, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    reduced = [axis.iter_type == REDUCTION for axis in axes]
    points = loops[: reduced.index(True)] if any(reduced) else loops
    share(schedule, points[:-1] or points, SMALLEST_PARALLEL)
    return True


def _vectorise(schedule: Schedule, block: SBlockRV) -> bool:
    """Spread outer points over threads and make neighbouring points one vector."""
    points, terms = _loops(schedule, block)
    node = schedule.get(block)
    if not points or _chooses(node, _innermost(node)):
        return False
    steps = _steps(node)
    if terms and steps <= {0}:
        return False
    work = _work(schedule, points + terms)
    widest = WIDEST if steps <= {0, 1} else WIDEST_STRIDED
    single = [loop for loop in schedule.get_loops(block) if _extent(schedule, loop) == 1]
    together = []
    if len(terms) == 1 and len(points) > 1 and len(node.reads) > 1:  # a matrix product: rows share a column
        extent = _extent(schedule, points[-2])
        points[-2], row = schedule.split(points[-2], [None, max(d for d in (4, 3, 2, 1) if extent % d == 0)])
        together = [row]
    outer, inner = schedule.split(points[-1], [None, width(_extent(schedule, points[-1]), widest)])
    schedule.reorder(*single, *points[:-1], outer, *terms, *together, inner)
    if terms and len(node.writes) == 1 and _extent(schedule, inner) > 1:
        # Sums stay in registers; TVM puts small buffers on the stack only if they are ``global``.
        written = schedule.cache_write(block, 0, "global")
        schedule.reverse_compute_at(written, outer)
        schedule.vectorize(schedule.get_loops(written)[-1])
    shared = [*points[:-1], outer]
    if terms and not together and _work(schedule, points[:-2]) >= PLENTY:
        shared = points[:-2]
    share(schedule, shared, work)
    schedule.vectorize(inner)
    for loop in together + (terms if _work(schedule, terms) <= WRITTEN_OUT else []):
        schedule.unroll(loop)
    if terms:
        start = schedule.decompose_reduction(block, terms[0])
        schedule.vectorize(schedule.get_loops(start)[-1])
        if together:
            schedule.unroll(schedule.get_loops(start)[-2])
    return True


def _innermost(block: SBlock) -> tirx.Var | None:
    """Return the variable of the innermost axis of points, or None."""
    axes = [a for a in block.iter_vars if a.iter_type != REDUCTION and int(a.dom.extent) > 1]
    return axes[-1].var if axes else None


def _steps(block: SBlock) -> set[int]:
    """Return how far the reads of a block move along their last dimension from point to point."""
    variable = _innermost(block)
    found = set()
    for read in block.reads:
        if variable is not None and len(read.region):
            coefficients = sym.pattern.detect_linear_equation(read.region[-1].min, [variable])
            found.add(int(coefficients[0]) if len(coefficients) else WIDEST)
    return found


def _sum_by_lanes(schedule: Schedule, block: SBlockRV) -> bool:
    """Turn a long sum over neighbours (a mean over h and w) into one sum a lane, then add the lanes."""
    points, terms = _loops(schedule, block)
    if not terms or not _steps(schedule.get(block)) <= {0}:
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
    share(schedule, outer, work)
    term, lane = schedule.get_loops(partial)[-2:]
    schedule.vectorize(lane)
    start = schedule.decompose_reduction(partial, term)
    schedule.vectorize(schedule.get_loops(start)[-1])
    schedule.decompose_reduction(block, schedule.get_loops(block)[-1])
    return True
