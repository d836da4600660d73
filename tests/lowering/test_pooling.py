"""Maximum pooling, over blocks of channels and in NCHW, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch.nn import functional as F
from tvm import relax, s_tir, tirx

from dlas.lowering.kernels.fusing import fuse_operators
from dlas.lowering.operators.pooling import WRITTEN, schedule_pooling
from dlas.lowering.operators.schedule import schedule_operators
from dlas.lowering.target import tvm_target
from dlas.testing.algorithms import HOST


def kernel(call: relax.Call, x: relax.Var) -> tirx.PrimFunc:
    """Return the one kernel of a pooling operator, scheduled."""
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(call))
    module = relax.transform.LegalizeOps(WRITTEN)(builder.get())
    scheduled = schedule_operators(schedule_pooling(module, HOST), HOST)
    (function,) = (each for each in scheduled.functions.values() if isinstance(each, tirx.PrimFunc))
    return function.with_attr("global_symbol", "main")


@pytest.mark.parametrize("layout", ["NCHW", "NCHW16c", "NCHW4c"])
@pytest.mark.parametrize(
    ("size", "window"),
    [
        ((12, 12), {"kernel_size": 3, "stride": 2, "padding": 1}),
        ((9, 7), {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}),
        ((8, 5), {"kernel_size": 2, "stride": 2, "ceil_mode": True}),
        ((6, 5), {"kernel_size": (3, 2), "stride": (1, 3), "padding": (1, 0)}),
        ((9, 9), {"kernel_size": 3, "stride": 1, "padding": 1, "dilation": 2}),
        ((1, 2), {"kernel_size": 5, "stride": 1, "padding": 2}),
    ],
)
def test_maxima_are_those_of_torch(layout: str, size: tuple[int, int], window: dict[str, Any]) -> None:
    plain = -1 - np.random.default_rng(0).random((2, 32, *size), np.float32)  # no border of zeros passes
    expected = F.max_pool2d(torch.from_numpy(plain), **window).numpy()
    options = {"pool_size": window["kernel_size"], "strides": window["stride"], "layout": layout}
    options |= {key: window[key] for key in ("padding", "dilation", "ceil_mode") if key in window}
    given = plain
    if layout != "NCHW":
        b = int(layout[4:-1])
        given, expected = (
            np.ascontiguousarray(each.reshape(2, -1, b, *each.shape[2:]).transpose(0, 1, 3, 4, 2))
            for each in (plain, expected)
        )
    x = relax.Var("x", relax.TensorType(given.shape, "float32"))
    function = kernel(relax.op.nn.max_pool2d(x, **options), x)
    assert "pad_temp" not in function.script(), "no copy of the input has a border"
    output = tvm.runtime.tensor(np.zeros_like(expected))
    tvm.tirx.build(function, target=tvm_target(HOST))["main"](tvm.runtime.tensor(given), output)
    np.testing.assert_array_equal(output.numpy(), expected)


def test_rows_are_taken_in_one_pass_with_what_follows() -> None:
    x = relax.Var("x", relax.TensorType((1, 64, 40, 40), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            pooled = builder.emit(relax.op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1)))
            output = builder.emit_output(builder.emit(relax.op.nn.relu(pooled)))
        builder.emit_func_output(output)
    module = schedule_pooling(fuse_operators(builder.get(), HOST).module, HOST)
    (function,) = (each for each in module.functions.values() if isinstance(each, tirx.PrimFunc))
    schedule = s_tir.Schedule(function)
    stages = schedule.get_child_blocks(schedule.get_sblock("root"))
    rows, last = (schedule.get_loops(each)[0] for each in (stages[0], stages[-1]))
    assert len(stages) == 2
    assert schedule.get(rows).same_as(schedule.get(last)), "both are in one loop"
    assert schedule.get(last).kind == tirx.ForKind.PARALLEL
    given = np.random.default_rng(0).normal(size=(1, 64, 40, 40)).astype(np.float32)
    written = tvm.runtime.tensor(np.zeros((1, 64, 20, 20), np.float32))
    built = tvm.tirx.build(function.with_attr("global_symbol", "main"), target=tvm_target(HOST))
    built["main"](tvm.runtime.tensor(given), written)
    expected = F.relu(F.max_pool2d(torch.from_numpy(given), 3, 2, 1)).numpy()
    np.testing.assert_array_equal(written.numpy(), expected)
