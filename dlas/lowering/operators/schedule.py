"""One common schedule for every operator that is not a convolution.

TVM has no schedules for CPUs: pooling, additions and linear layers would run
on one thread, one element at a time, and spoil every comparison of the
convolutions beside them.  Here outer loops become parallel and inner ones
vectors, for any loop nest; where TVM refuses a rule, the next, simpler one is tried.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import Schedule

from dlas.errors import Unsupported
from dlas.lowering.operators.gpu import on_threads, schedule_for_gpu
from dlas.lowering.operators.gpu_limits import beyond_limits
from dlas.lowering.operators.inline import inline_elementwise
from dlas.lowering.operators.share import parallelise, parallelise_opaque
from dlas.lowering.operators.sum_by_lanes import sum_by_lanes
from dlas.lowering.operators.vectorise import vectorise
from dlas.stack import Target

RULES = (sum_by_lanes, vectorise, parallelise, parallelise_opaque)
"""What is tried on a block, in this order; a rule returns whether it applies."""


def schedule_operators(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module`` with every PrimFunc scheduled that is not yet.

    Parameters
    ----------
    module : tvm.IRModule
        PrimFuncs with the attribute ``tirx.is_scheduled`` are left alone.

    Raises
    ------
    Unsupported
        If ``target`` is a GPU and a PrimFunc, scheduled here or before, would not run on it.
    """
    gpu, scheduled = target.on_gpu, tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions_items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        if not is_scheduled(function):
            function = schedule_one(function, target)
            scheduled.update_func(variable, function)
        if gpu and not on_threads(function):
            raise Unsupported(f"{variable.name_hint} has no schedule for {target.description['kind']}")
        if gpu and (reason := beyond_limits(function, target)):
            raise Unsupported(f"{variable.name_hint}: {reason}")
    return scheduled


def schedule_one(function: tirx.PrimFunc, target: Target) -> tirx.PrimFunc:
    """Return one operator with the common schedule for a target."""
    return schedule_for_gpu(function, target) if target.on_gpu else schedule_operator(function)


def schedule_each(module: tvm.IRModule, scheduled: Callable[[tirx.PrimFunc], tirx.PrimFunc]) -> tvm.IRModule:
    """Return ``module`` with what ``scheduled`` returns for each PrimFunc that has no schedule yet."""
    changed = tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc) and not is_scheduled(function):
            changed.update_func(variable, scheduled(function))
    return changed


def is_scheduled(function: tirx.PrimFunc) -> bool:
    """Whether a PrimFunc's loops are final."""
    return bool(function.attrs is not None and function.attrs.get("tirx.is_scheduled", False))


def schedule_operator(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a CPU operator parallel outside and vectorised inside, as far as its loops allow."""
    with contextlib.suppress(Exception):  # a loop nest that cannot be scheduled at all runs as it is
        schedule = s_tir.Schedule(function)
        inline_elementwise(schedule)
        for block in schedule.get_child_blocks(schedule.get_sblock("root")):
            schedule = _first_that_works(schedule, schedule.get(block).name_hint)
        return schedule.mod["main"].with_attr("tirx.is_scheduled", True)
    return function


def _first_that_works(schedule: Schedule, name: str) -> Schedule:
    """Return the schedule with the block ``name`` transformed by the first rule that applies."""
    for rule in RULES:
        attempt = schedule.copy()
        with contextlib.suppress(Exception):  # where TVM refuses a transformation, the next rule is tried
            if rule(attempt, attempt.get_sblock(name)):
                return attempt
    return schedule
