from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from torch.nn import functional as F
from tvm import s_tir, te, tirx

from dlas.axes.compilers.programs.tvm import build_module, write_program
from dlas.errors import Unsupported
from dlas.lowering.graph.graph import OPAQUE
from dlas.lowering.kernels.tail import Epilogue, EpilogueStep, fold_affine
from dlas.lowering.lower import LoweredNetwork, lower, schedule
from dlas.lowering.operators.schedule import schedule_operator, schedule_operators
from dlas.lowering.operators.vectorise import width
from dlas.lowering.target import tvm_target
from dlas.schedules.direct import Direct
from dlas.stack import Conv, Target
from dlas.testing.algorithms import HOST
from tests.fixtures.lowering import Calls, run
from tests.fixtures.operators import OPERATORS, network_of
from tests.fixtures.small_network import LAYERS, error, images, network
from tests.fixtures.targets import CUDA, OPENCL


@dataclass(frozen=True)
class NoDepthwise(Direct):
    def supports(self, conv: Conv) -> str | None:
        return "no depthwise here" if conv.depthwise else None


@pytest.fixture(scope="module")
def lowered() -> LoweredNetwork:
    return lower(network(), Direct(), 2)


def prim_functions(module: tvm.IRModule) -> dict[str, tirx.PrimFunc]:
    return {
        variable.name_hint: function
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }


def test_one_kernel_a_convolution_with_the_layers_name(lowered: LoweredNetwork) -> None:
    assert sorted(layer["name"] for layer in lowered.layers) == sorted(LAYERS)
    kernels = [layer["kernel"] for layer in lowered.layers]
    assert len(set(kernels)) == len(LAYERS)
    assert set(kernels) <= set(prim_functions(lowered.module))
    assert "conv_stem_0" in kernels


def test_batch_norm_bias_residual_and_activation_are_in_the_kernel(lowered: LoweredNetwork) -> None:
    fused = {layer["name"]: layer["fused"] for layer in lowered.layers}
    assert all(layer["bias"] for layer in lowered.layers)
    assert fused["stem.0"] == ["Relu"]
    assert fused["second"] == ["Add", "Relu"]
    assert fused["depthwise"] == ["Clip"]
    assert fused["pointwise"] == ["Swish"]
    assert fused["squeeze"] == ["Sigmoid"]


def test_layers_tell_shapes_and_counts(lowered: LoweredNetwork) -> None:
    stem = next(layer for layer in lowered.layers if layer["name"] == "stem.0")
    assert (stem["n"], stem["c"], stem["k"], stem["p"], stem["q"]) == (2, 3, 16, 10, 10)
    assert stem["strides"] == (2, 2) and stem["padding"] == (1, 1, 1, 1)
    assert stem["macs"] == 2 * 16 * 10 * 10 * 3 * 9
    assert stem["nonzeros"] == 16 * 3 * 9
    assert stem["algorithm"] == "direct" and stem["declined"] is None
    assert set(stem["types"].values()) == {"float32"}


def test_everything_the_algorithm_takes_is_covered(lowered: LoweredNetwork) -> None:
    assert lowered.coverage == {"convolutions": 1.0, "macs": 1.0}


def test_declined_convolutions_take_direct_and_say_why(tmp_path: Path) -> None:
    small, x = network(), images(1)
    lowered = lower(small, NoDepthwise(), 1)
    layers = {layer["name"]: layer for layer in lowered.layers}
    assert layers["depthwise"]["algorithm"] == "direct"
    assert layers["depthwise"]["declined"] == "no depthwise here"
    assert layers["first"]["declined"] is None
    macs = sum(layer["macs"] for layer in lowered.layers)
    assert lowered.coverage == {
        "convolutions": 5 / 6,
        "macs": pytest.approx(1 - layers["depthwise"]["macs"] / macs),
    }
    assert error(run(lowered, tmp_path, x), small.reference(x)) < 1e-5


def test_weights_are_parameters_and_the_library_is_code_only(tmp_path: Path) -> None:
    wide = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.Linear(64 * 18 * 18, 64))
    lowered = lower(network(wide), Direct(), 1)
    build = write_program(lowered, schedule(lowered, HOST), HOST, tmp_path)
    stored = (tmp_path / "parameters.safetensors").stat().st_size
    assert stored > 5_000_000
    assert build.library_bytes is not None and build.library_bytes < 200_000
    packed = [array.nbytes for array in lowered.parameters.values()]
    assert build.packed_bytes == sum(packed) and 5_000_000 < build.packed_bytes < stored


def test_the_same_program_is_written_twice_alike(tmp_path: Path) -> None:
    for name in ("first", "second"):
        lowered = lower(network(), Direct(), 1)
        write_program(lowered, schedule(lowered, HOST), HOST, tmp_path / name)
    for file in ("parameters.safetensors", "program.json"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


@pytest.mark.parametrize(
    ("use", "fused"),
    [
        (lambda conv, x: torch.softmax(conv(x), 1), []),
        (lambda conv, x: (y := conv(x)) + F.max_pool2d(y, 3, 1, 1), []),
        (lambda conv, x: F.hardswish(conv(x)), ["Add", "Clip", "Div", "Mul"]),
        (lambda conv, x: F.leaky_relu(conv(x), 0.3) * 2 - x, ["LeakyRelu", "Mul", "Sub"]),
        (lambda conv, x: torch.tanh(conv(x)) * x.mean((2, 3), keepdim=True), ["Tanh", "Mul"]),
        (lambda conv, x: F.gelu(conv(x)), ["Gelu"]),
        (lambda conv, x: conv(x).mean((2, 3), keepdim=True) * x, []),
    ],
    ids=["softmax", "read twice", "hardswish", "leaky relu", "broadcast operand", "gelu", "shape changes"],
)
def test_tails_reach_as_far_as_they_may(
    use: Callable[..., torch.Tensor], fused: list[str], tmp_path: Path
) -> None:
    shape = (4, 9, 9)
    calls, x = network(Calls(use), shape), images(2, shape)
    lowered = lower(calls, Direct(), 2)
    assert lowered.layers[0]["fused"] == fused and lowered.layers[0]["bias"]
    assert error(run(lowered, tmp_path, x), calls.reference(x)) < 1e-5


def test_sigmoid_is_exact_to_rounding_and_at_its_ends(tmp_path: Path) -> None:
    use = Calls(lambda conv, x: torch.sigmoid(conv(x)))
    with torch.no_grad():
        nn.init.zeros_(use.conv.weight)
        nn.init.zeros_(use.get_parameter("conv.bias"))
        for channel in range(4):
            use.conv.weight[channel, channel, 1, 1] = 1
    shape = (4, 64, 64)
    x = np.linspace(-100, 100, 4 * 64 * 64, dtype=np.float32).reshape(1, *shape)
    calls = network(use, shape)
    actual, expected = run(lower(calls, Direct(), 1), tmp_path, x), calls.reference(x)
    np.testing.assert_allclose(actual, expected, rtol=4e-7, atol=1e-37)
    bare = Epilogue((EpilogueStep("relax.sigmoid", (("value", 0),)),))
    ends = te.placeholder((4,), "float32", "ends")
    function = te.create_prim_func([ends, bare(ends)]).with_attr("global_symbol", "main")
    output = tvm.runtime.tensor(np.zeros(4, np.float32))
    given = np.array([np.inf, -np.inf, np.nan, 0], np.float32)
    tvm.tirx.build(function, target=tvm_target(HOST))["main"](tvm.runtime.tensor(given), output)
    np.testing.assert_allclose(output.numpy(), [1, 0, np.nan, 0.5], atol=1e-37)


def test_a_very_long_tail_is_cut(tmp_path: Path) -> None:
    def use(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
        y = conv(x)
        for _ in range(12):
            y = torch.tanh(y + x)
        assert isinstance(y, torch.Tensor)
        return y

    shape = (4, 6, 6)
    calls, x = network(Calls(use), shape), images(1, shape)
    lowered = lower(calls, Direct(), 1)
    assert 4 < len(lowered.layers[0]["fused"]) < 20
    assert error(run(lowered, tmp_path, x), calls.reference(x)) < 1e-5


def test_a_layer_used_twice_is_told_apart(tmp_path: Path) -> None:
    shape = (4, 6, 6)
    calls, x = network(Calls(lambda conv, x: conv(conv(x))), shape), images(1, shape)
    lowered = lower(calls, Direct(), 1)
    assert [layer["name"] for layer in lowered.layers] == ["conv", "conv#2"]
    assert error(run(lowered, tmp_path, x), calls.reference(x)) < 1e-5


def test_a_weight_computed_at_run_time_is_left_to_tvm(tmp_path: Path) -> None:
    def use(conv: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(conv(x), conv.weight * x.mean())

    shape = (4, 6, 6)
    calls, x = network(Calls(use), shape), images(1, shape)
    lowered = lower(calls, Direct(), 1)
    stock = lowered.layers[1]
    assert stock["algorithm"] == "stock" and "run time" in (stock["declined"] or "")
    assert stock["macs"] == 4 * 4 * 4 * 4 * 9
    assert lowered.coverage is not None and lowered.coverage["convolutions"] == 0.5
    assert error(run(lowered, tmp_path, x), calls.reference(x)) < 1e-5


def test_a_network_without_convolutions_has_no_coverage() -> None:
    lowered = lower(network(nn.Sequential(nn.Flatten(), nn.Linear(1200, 5))), Direct(), 1)
    assert lowered.layers == [] and lowered.coverage is None


def test_leading_scales_and_shifts_fold_into_weight_and_bias() -> None:
    conv = Conv("layer", 1, 2, 4, 4, 3, 1, 1)
    weight = np.arange(6, dtype=np.float32).reshape(3, 2, 1, 1)
    scale, shift = np.full((3, 1, 1), 2, np.float32), np.ones((1, 3, 1, 1), np.float32)
    steps = [
        EpilogueStep("relax.add", (("value", 0), ("operand", 0))),
        EpilogueStep("relax.multiply", (("operand", 1), ("value", 1))),
        EpilogueStep("relax.subtract", (("number", 5.0), ("value", 2))),
        EpilogueStep("relax.nn.relu", (("value", 3),)),
    ]
    folded, rest, operands = fold_affine(weight, conv, steps, [shift, scale])
    assert np.array_equal(folded, -2 * weight)
    assert [step.operator for step in rest] == ["relax.add", "relax.nn.relu"]
    assert rest[1].inputs == (("value", 1),)
    assert len(operands) == 1, "operands that were folded are read no more"
    assert operands[0].shape == (3, 1, 1) and np.all(operands[0] == 3)


def test_a_scale_that_is_read_again_is_not_folded() -> None:
    conv = Conv("layer", 1, 1, 4, 4, 1, 1, 1)
    steps = [
        EpilogueStep("relax.add", (("value", 0), ("number", 3.0))),
        EpilogueStep("relax.multiply", (("value", 0), ("value", 1))),
    ]
    weight = np.ones((1, 1, 1, 1), np.float32)
    assert fold_affine(weight, conv, steps, [])[1] == tuple(steps)


def placeholder(*shape: int, dtype: str = "float32") -> te.Tensor:
    return te.placeholder(shape, dtype, "x")


@pytest.mark.parametrize("name", OPERATORS)
def test_the_common_schedule_changes_no_answer(name: str) -> None:
    x = placeholder(1, 32, 32, 32)
    result = OPERATORS[name](x)
    function = te.create_prim_func([x, result]).with_attr("global_symbol", "main")
    given = np.random.default_rng(0).standard_normal((1, 32, 32, 32)).astype(np.float32)
    outputs = []
    for form in (function, schedule_operator(function)):
        run = tvm.tirx.build(form, target=tvm_target(HOST))["main"]
        output = tvm.runtime.tensor(np.zeros([int(v) for v in result.shape], str(result.dtype)))
        run(tvm.runtime.tensor(given), output)
        outputs.append(output.numpy())
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["max pool", "mean", "concatenate", "matmul", "resize", "adaptive pool"])
def test_the_common_schedule_is_parallel(name: str) -> None:
    x = placeholder(1, 64, 32, 32)
    text = schedule_operator(te.create_prim_func([x, OPERATORS[name](x)])).script()
    assert "T.parallel" in text
    assert "T.vectorized" in text or name in ("adaptive pool", "resize")


def test_width_prefers_whole_vectors() -> None:
    assert [width(extent) for extent in (1000, 112, 56, 7, 1009, 10)] == [40, 16, 56, 7, 1, 10]


def test_an_operator_whose_schedule_does_not_compile_runs_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(2), nn.Flatten())
    lowered = lower(network(pooled), Direct(), 1)

    def broken(function: tirx.PrimFunc) -> tirx.PrimFunc:
        wrong = s_tir.Schedule(function)
        block = wrong.get_child_blocks(wrong.get_sblock("root"))[-1]
        wrong.bind(wrong.get_loops(block)[1], "threadIdx.x")
        return wrong.mod["main"]

    monkeypatch.setattr("dlas.lowering.operators.schedule.schedule_operator", broken)
    module = schedule(lowered, HOST)
    with pytest.raises(RuntimeError):
        build_module(module, HOST, module)
    assert build_module(module, HOST, lowered.module) is not None


@pytest.mark.parametrize("target", [CUDA, OPENCL], ids=["cuda", "opencl"])
def test_gpu_kernels_give_every_point_a_thread(target: Target, lowered: LoweredNetwork) -> None:
    functions = prim_functions(schedule(lowered, target))
    assert all("threadIdx.x" in function.script() for function in functions.values())
    assert "T.sblock_alloc_buffer" in functions["conv_depthwise"].script()
    assert 'scope="local"' in functions["conv_depthwise"].script()


@pytest.mark.parametrize("target", [CUDA, OPENCL], ids=["cuda", "opencl"])
def test_operators_that_tvm_has_no_gpu_schedule_for(target: Target) -> None:
    module = network_of("adaptive pool")
    scheduled = schedule_operators(module, target)
    assert "threadIdx.x" in scheduled["adaptive_pool"].script()
    assert "threadIdx.x" not in module["adaptive_pool"].script(), "what is given stays as it is"
    kind = target.kind
    with pytest.raises(Unsupported, match=f"cumulative_sum has no schedule for {kind}"):
        schedule_operators(network_of("cumulative sum"), target)


def test_kernels_are_fused_with_nothing_else(lowered: LoweredNetwork) -> None:
    functions = prim_functions(lowered.module)
    assert all(functions[name].attrs["op_pattern"] == OPAQUE for name in lowered.kernels)
    assert not any(name.startswith("fused_conv") for name in functions)


@pytest.mark.parametrize("outputs", [7, 40, 1000])
@pytest.mark.parametrize("rows", [1, 3])
def test_linear_layers_are_one_kernel_with_their_bias_and_activation(
    rows: int, outputs: int, tmp_path: Path
) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(48, outputs), nn.ReLU())
    shape = (3, 4, 4)
    dense, x = network(module, shape), images(rows, shape)
    lowered = lower(dense, Direct(), rows)
    assert len(prim_functions(lowered.module)) == 1
    assert error(run(lowered, tmp_path, x), dense.reference(x)) < 1e-5
