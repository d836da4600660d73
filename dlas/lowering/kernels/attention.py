"""What attention is made of besides linear layers: products of run-time values, and softmax."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import tvm
from tvm import relax, s_tir, tirx

from dlas.lowering.kernels.products.batched import (
    PANELS,
    PRODUCT,
    UNPACKED,
    legalise_matmul,
    schedule_product,
)
from dlas.lowering.operators.blocks import is_costly
from dlas.lowering.operators.schedule import schedule_each
from dlas.lowering.operators.softmax import OUTPUT, STAGES, legalise_softmax, schedule_softmax
from dlas.stack import Target

Legalise = Callable[[relax.BlockBuilder, relax.Call], relax.Call]


def legalisation(target: Target) -> dict[str, Legalise]:
    """Return legalisation functions by operator; none for a GPU, where TVM's own stages are scheduled."""
    if not target.on_processors:
        return {}
    return {"relax.matmul": partial(legalise_matmul, target=target), "relax.nn.softmax": legalise_softmax}


def schedule_attention(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """Return ``module`` with products of run-time values and softmax scheduled for a CPU."""

    def scheduled(function: tirx.PrimFunc) -> tirx.PrimFunc:
        try:
            return _scheduled(function, target)
        except s_tir.ScheduleError:  # what TVM refuses has the common schedule
            return function

    return schedule_each(module, scheduled) if target.on_processors else module


def _scheduled(function: tirx.PrimFunc, target: Target) -> tirx.PrimFunc:
    """Return a function of such a product or softmax scheduled, any other unchanged."""
    schedule = s_tir.Schedule(function)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = [schedule.get(block).name_hint for block in blocks]
    kept = next((own for own in ({PANELS, PRODUCT}, set(STAGES)) if own < set(names)), None)
    if kept is None:
        return function
    written = schedule.get(schedule.get_sblock(UNPACKED if PRODUCT in kept else OUTPUT))
    shapes = [
        [int(axis.dom.extent) for axis in block.iter_vars] for block in (written, schedule.get(blocks[-1]))
    ]
    others = [block for name, block in zip(names, blocks, strict=True) if name not in kept]
    if shapes[0] != shapes[1] or sum(is_costly(schedule.get(block)) for block in others) > 1:
        return function
    for block in others[:-1]:
        schedule.compute_inline(block)
    if PRODUCT in kept:
        schedule_product(schedule, target)
    else:
        schedule_softmax(schedule)
    return schedule.mod["main"].with_attr("tirx.is_scheduled", True)
