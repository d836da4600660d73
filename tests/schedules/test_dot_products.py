"""Dot products: which instruction which processor gets, and that it adds the same numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
import tvm
from torch.nn import functional
from tvm.s_tir import TensorIntrin

from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.tuning.workload import Workload
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.schedules.loops.dot_forms import ByDotProducts
from dlas.schedules.loops.dot_products import FAMILIES, MOST_SUMS, dot_products
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.winograd import Winograd
from dlas.stack import BFLOAT16, Algorithm, Array, Conv, Target, to_bfloat16
from dlas.sweep.study import parts
from tests.fixtures.assembly import assembly
from tests.fixtures.convolutions import BYTES, SQUARE
from tests.fixtures.quantised_graphs import QuantisedGraph, built, drawn
from tests.fixtures.targets import AVX2, AVX512, BF16, CUDA, DOTPROD, I8MM, NEON

LAYER = replace(SQUARE, **BYTES)
IN_BFLOAT16 = replace(SQUARE, input_type=BFLOAT16, weight_type=BFLOAT16)
WITHOUT = replace(AVX2, description={**AVX2.description, "mcpu": "skylake-avx512"})
NATIVE = parts.make("hardware", "local_cpu", {}).target()
ALGORITHMS = {
    "spatial_pack": SpatialPack(),
    "blocked": SpatialPack(layout="blocked"),
    "gemm": Gemm(),
    "direct": Direct(),
}


def skip_without_avx2() -> None:
    """Skip a test that runs code for AVX2 where there is none."""
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")


def kernel_of(algorithm: Algorithm, target: Target, conv: Conv = LAYER) -> ConvolutionKernel:
    weight = np.random.default_rng(0).integers(
        -128, 128, (conv.k, conv.c // conv.groups, conv.r, conv.s), np.int8
    )
    weight = to_bfloat16(weight) if conv.weight_type == BFLOAT16 else weight
    return make_kernel(algorithm, conv, weight, "main", target=target)


@pytest.mark.parametrize(
    ("target", "layer", "instruction"),
    [
        (AVX512, LAYER, r"vpdpbusd.*%zmm"),
        (WITHOUT, LAYER, r"vpmaddwd.*%zmm"),
        (AVX2, LAYER, r"vpmaddwd.*%ymm"),
        (DOTPROD, LAYER, r"\ssdot\s"),
        (I8MM, LAYER, r"\susdot\s"),
        (AVX512, IN_BFLOAT16, r"vdpbf16ps.*%zmm"),
        (BF16, IN_BFLOAT16, r"\sbfdot\s"),
    ],
    ids=["vnni", "avx512", "avx2", "dotprod", "i8mm", "avx512bf16", "bf16"],
)
@pytest.mark.parametrize(
    "name", ["blocked", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gemm", "direct"))]
)
def test_each_processor_adds_by_its_own_instruction(
    name: str, target: Target, layer: Conv, instruction: str
) -> None:
    text = assembly(kernel_of(ALGORITHMS[name], target, layer), target)
    assert len(re.findall(instruction, text)) >= 8


INNERMOST_LOOP = re.compile(r"^(\.L\w+):\n((?:(?!\.L).*\n)*?)\s+j\w+\s+\1\n", re.MULTILINE)
ADDS = re.compile("vpdpbusd|vpmaddwd|vdpbf16ps")


@pytest.mark.parametrize(
    ("target", "layer"),
    [(AVX512, LAYER), (AVX2, LAYER), (AVX512, IN_BFLOAT16)],
    ids=["vnni", "avx2", "avx512bf16"],
)
def test_tiles_have_sums_enough_and_stay_in_registers(target: Target, layer: Conv) -> None:
    kernel = kernel_of(ALGORITHMS["blocked"], target, layer)
    for point in kernel.space(target)[:3]:
        vectors = int(point["filters"]) * -(-int(point["lanes"]) // vector_unit(target).lanes)
        assert 7 <= vectors * int(point["columns"]) <= MOST_SUMS
    if target is AVX2:  # LLVM adds its products in another order, with a few of them in memory
        return
    loops = [body for _, body in INNERMOST_LOOP.findall(assembly(kernel, target)) if ADDS.search(body)]
    assert len(loops) == 1 and "(%rsp)" not in loops[0]


def test_other_types_and_targets_have_none() -> None:
    assert dot_products(SQUARE, AVX512) is None
    assert dot_products(LAYER, CUDA) is None and dot_products(LAYER, NEON) is None
    assert dot_products(replace(LAYER, weight_type="int16"), AVX512) is None
    assert type(kernel_of(SpatialPack(), NEON).algorithm) is SpatialPack
    assert dot_products(IN_BFLOAT16, AVX2) is None and dot_products(IN_BFLOAT16, DOTPROD) is None
    assert dot_products(replace(IN_BFLOAT16, input_type="float32"), AVX512) is None


@pytest.mark.parametrize("part", [Direct, Gemm, SpatialPack])
def test_classes_derived_from_an_algorithm_keep_their_own_code(part: type[Algorithm]) -> None:
    derived = type("Derived", (part,), {})()
    for layer in (LAYER, IN_BFLOAT16):
        assert isinstance(part().for_layer(layer, AVX512), ByDotProducts)
        assert derived.for_layer(layer, AVX512) is derived


@pytest.mark.parametrize("name", ALGORITHMS)
def test_layers_name_the_algorithm_and_unpack_their_weights(name: str) -> None:
    kernel = kernel_of(ALGORITHMS[name], DOTPROD)
    assert kernel.describe()["algorithm"] == ("spatial_pack" if name == "blocked" else name)
    assert kernel.requested and len(kernel.packed) == 2
    np.testing.assert_array_equal(kernel.algorithm.unpack(kernel.packed, kernel.conv), kernel.weight)


def chain(batch: int) -> OnnxNetwork:
    """Return convolutions of all kinds in a row: few channels, strides, groups, odd numbers of filters."""
    draw, graph = np.random.default_rng(0), QuantisedGraph((batch, 3, 33, 29))
    x, scale = graph.quantised("x", (0.03, 110)), 0.03
    layers = [(3, 16, 7, 2, 1, 3), (16, 32, 3, 1, 1, 1), (32, 64, 1, 1, 1, 0), (64, 64, 3, 1, 4, 1)]
    layers += [(64, 40, 1, 2, 1, 0), (40, 24, 3, 1, 1, 1), (24, 24, 3, 1, 24, 1), (24, 12, 1, 1, 1, 0)]
    for c, k, size, stride, groups, padding in layers:
        weight = draw.integers(-128, 128, (k, c // groups, size, size), np.int8)
        scales = draw.uniform(1e-3, 3e-3, k).astype(np.float32)
        bias = graph.integers(draw.integers(-500, 500, k, np.int32), np.float32(scale) * scales)
        pads = {"pads": [padding] * 4, "strides": [stride] * 2, "group": groups}
        y = graph.op("Conv", x, graph.integers(weight, scales), bias, **pads)
        scale = float(np.float32(scale * 0.2 * np.sqrt(weight[0].size)))
        x = graph.quantised(y, (scale, 128))
    return graph.network(x)


@pytest.mark.parametrize("target", [NATIVE, AVX2], ids=["native", "avx2"])
@pytest.mark.parametrize(
    "name",
    ["blocked", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gemm", "spatial_pack", "direct"))],
)
def test_all_kinds_of_layers_equal_onnx_runtime(name: str, target: Target, tmp_path: Path) -> None:
    skip_without_avx2()
    network, x = chain(2), drawn((2, 3, 33, 29), spread=1.5)
    build, program = built(network, ALGORITHMS[name], "hand", tmp_path, 2, target)
    assert build.coverage is not None and build.coverage["integers"] == 1
    expected = network.reference(x)
    assert len(np.unique(expected)) > 20
    np.testing.assert_array_equal(program.run(x), expected)


KINDS = (
    Conv("rows end inside vectors", 1, 20, 9, 9, 16, 3, 3, padding=(1, 1, 1, 1), padding_value=201, **BYTES),
    Conv("1x1, stride 2", 2, 13, 9, 7, 16, 1, 1, strides=(2, 2), **BYTES),
    Conv("groups of odd channels", 1, 10, 8, 9, 16, 3, 3, (2, 1), (1, 0, 2, 1), groups=2, **BYTES),
    Conv("dilated, stride 3", 1, 8, 13, 29, 8, 2, 3, (1, 3), (0, 2, 1, 3), (2, 2), padding_value=7, **BYTES),
    Conv("one row high", 1, 3, 6, 11, 16, 1, 5, (2, 1), (1, 2, 0, 2), padding_value=128, **BYTES),
    Conv("one pixel", 1, 70, 1, 1, 32, 1, 1, **BYTES),
    Conv("a long row", 1, 4, 2, 301, 4, 1, 3, **BYTES),
)


def expected_sums(x: npt.NDArray[np.uint8], kernel: ConvolutionKernel) -> npt.NDArray[np.float64]:
    """Return the sums, which float64 holds exactly."""
    conv = kernel.conv
    top, left, bottom, right = conv.padding
    around = (left, right, top, bottom)
    padded = functional.pad(torch.from_numpy(x).double(), around, value=float(conv.padding_value))
    weight = torch.from_numpy(kernel.weight).double()
    convolved = functional.conv2d(padded, weight, None, conv.strides, 0, conv.dilation, conv.groups)
    return np.asarray(convolved)


def sums(
    function: tvm.tirx.PrimFunc, target: Target, kernel: ConvolutionKernel, x: npt.NDArray[np.uint8]
) -> Array:
    """Return what a scheduled kernel computes."""
    program = tvm.tirx.build(function, target=tvm.target.Target(dict(target.description)))
    output = tvm.runtime.tensor(np.full(kernel.conv.output_shape, -1, kernel.conv.output_type))
    program["main"](*map(tvm.runtime.tensor, (x, *kernel.packed)), output)
    return np.asarray(output.numpy())


@pytest.mark.parametrize("conv", KINDS, ids=lambda conv: conv.name)
@pytest.mark.parametrize("target", [NATIVE, AVX2], ids=["native", "avx2"])
@pytest.mark.parametrize("name", ["direct", "gemm"])
def test_words_of_all_kinds_add_up(name: str, target: Target, conv: Conv) -> None:
    skip_without_avx2()
    kernel = kernel_of(ALGORITHMS[name], target, conv)
    assert isinstance(kernel.algorithm, ByDotProducts)
    np.testing.assert_array_equal(kernel.algorithm.unpack(kernel.packed, kernel.conv), kernel.weight)
    x = np.random.default_rng(1).integers(0, 256, conv.input_shape, np.uint8)
    best = schedule_kernel(kernel, target, kernel.space(target)[0])
    np.testing.assert_array_equal(sums(best, target, kernel, x), expected_sums(x, kernel))


@pytest.mark.parametrize("target", [AVX512, DOTPROD], ids=["unsigned", "signed"])
@pytest.mark.parametrize("name", ["direct", "gemm"])
def test_words_add_up_without_instructions(name: str, target: Target) -> None:
    kernel = kernel_of(ALGORITHMS[name], target, KINDS[2])
    x = np.random.default_rng(1).integers(0, 256, kernel.conv.input_shape, np.uint8)
    minimal = schedule_kernel(kernel, NATIVE)
    np.testing.assert_array_equal(sums(minimal, NATIVE, kernel, x), expected_sums(x, kernel))


def test_what_algorithms_decline_is_added_by_dot_products() -> None:
    kernel = kernel_of(Winograd(), AVX512)
    assert kernel.declined and isinstance(kernel.algorithm, ByDotProducts)
    assert kernel.describe()["algorithm"] == "direct"


def test_schedules_that_another_process_found_have_their_instructions() -> None:
    # A trace names them; nothing but importing the algorithms has registered those of other processors.
    assert len(FAMILIES) > 4
    for dots in FAMILIES:
        for lanes in dots.instructions:
            assert TensorIntrin.get(f"dlas.{dots.name}.{lanes}", allow_missing=True) is not None


@pytest.mark.parametrize("name", ALGORITHMS)
def test_schedules_come_back_from_their_traces(name: str) -> None:
    kernel = kernel_of(ALGORITHMS[name], AVX512)
    workload = Workload.of(kernel)
    schedule = workload.apply(kernel.space(AVX512)[0], AVX512)
    replayed = workload.replay(json.loads(json.dumps(workload.trace_of(schedule))))
    tvm.ir.assert_structural_equal(replayed.mod, schedule.mod)
