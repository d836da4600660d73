"""Dot products: which instruction which processor gets, and that it adds the same numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from dlas.lowering.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels import schedule_kernel
from dlas.networks.onnx_network import OnnxNetwork
from dlas.schedules.gemm import Gemm
from dlas.schedules.loops.dot_products import MOST_SUMS, dot_products
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import BFLOAT16, Algorithm, Conv, Target, to_bfloat16
from dlas.study import parts
from tests.fixtures.convolutions import SQUARE
from tests.fixtures.quantised_graphs import QuantisedGraph, built, drawn
from tests.fixtures.targets import AVX2, AVX512, CUDA, NEON

BYTES: dict[str, Any] = {
    "input_type": "uint8",
    "weight_type": "int8",
    "accumulator_type": "int32",
    "output_type": "int32",
}
LAYER = replace(SQUARE, **BYTES)
HALVES = replace(SQUARE, input_type=BFLOAT16, weight_type=BFLOAT16)
DOTPROD, I8MM, BF16 = (
    replace(NEON, description={**NEON.description, "mattr": ["+neon", feature]})
    for feature in ("+dotprod", "+i8mm", "+bf16")
)
WITHOUT = replace(AVX2, description={**AVX2.description, "mcpu": "skylake-avx512"})
NATIVE = parts.make("hardware", "local_cpu", {}).target()
ALGORITHMS = {
    "spatial_pack": SpatialPack(),
    "blocked": SpatialPack(layout="blocked"),
    "gemm": Gemm(),
}


def kernel_of(algorithm: Algorithm, target: Target, conv: Conv = LAYER) -> ConvolutionKernel:
    weight = np.random.default_rng(0).integers(
        -128, 128, (conv.k, conv.c // conv.groups, conv.r, conv.s), np.int8
    )
    weight = to_bfloat16(weight) if conv.weight_type == BFLOAT16 else weight
    return make_kernel(algorithm, conv, weight, "main", target=target)


def instructions(kernel: ConvolutionKernel, target: Target) -> str:
    """Return the assembly of a kernel's best guess."""
    best = kernel.space(target)[0]
    on = tvm.target.Target(dict(target.description))
    built = tvm.tirx.build(schedule_kernel(kernel, target, best), target=on)
    return str(built.inspect_source("s"))


@pytest.mark.parametrize(
    ("target", "layer", "instruction"),
    [
        (AVX512, LAYER, r"vpdpbusd.*%zmm"),
        (WITHOUT, LAYER, r"vpmaddwd.*%zmm"),
        (AVX2, LAYER, r"vpmaddwd.*%ymm"),
        (DOTPROD, LAYER, r"\ssdot\s"),
        (I8MM, LAYER, r"\susdot\s"),
        (AVX512, HALVES, r"vdpbf16ps.*%zmm"),
        (BF16, HALVES, r"\sbfdot\s"),
    ],
    ids=["vnni", "avx512", "avx2", "dotprod", "i8mm", "avx512bf16", "bf16"],
)
@pytest.mark.parametrize("name", ["blocked", pytest.param("gemm", marks=pytest.mark.slow)])
def test_each_processor_adds_by_its_own_instruction(
    name: str, target: Target, layer: Conv, instruction: str
) -> None:
    text = instructions(kernel_of(ALGORITHMS[name], target, layer), target)
    assert len(re.findall(instruction, text)) >= 8


INNERMOST_LOOP = re.compile(r"^(\.L\w+):\n((?:(?!\.L).*\n)*?)\s+j\w+\s+\1\n", re.MULTILINE)
ADDS = re.compile("vpdpbusd|vpmaddwd|vdpbf16ps")


@pytest.mark.parametrize(
    ("target", "layer"),
    [(AVX512, LAYER), (AVX2, LAYER), (AVX512, HALVES)],
    ids=["vnni", "avx2", "avx512bf16"],
)
def test_tiles_have_sums_enough_and_stay_in_registers(target: Target, layer: Conv) -> None:
    kernel = kernel_of(ALGORITHMS["blocked"], target, layer)
    for point in kernel.space(target)[:3]:
        vectors = int(point["filters"]) * -(-int(point["lanes"]) // vector_unit(target).lanes)
        assert 7 <= vectors * int(point["columns"]) <= MOST_SUMS
    if target is AVX2:  # LLVM adds its products in another order, with a few of them in memory
        return
    loops = [body for _, body in INNERMOST_LOOP.findall(instructions(kernel, target)) if ADDS.search(body)]
    assert len(loops) == 1 and "(%rsp)" not in loops[0]


def test_other_types_and_targets_have_none() -> None:
    assert dot_products(SQUARE, AVX512) is None
    assert dot_products(LAYER, CUDA) is None and dot_products(LAYER, NEON) is None
    assert dot_products(replace(LAYER, weight_type="int16"), AVX512) is None
    assert type(kernel_of(SpatialPack(), NEON).algorithm) is SpatialPack
    assert dot_products(HALVES, AVX2) is None and dot_products(HALVES, DOTPROD) is None
    assert dot_products(replace(HALVES, input_type="float32"), AVX512) is None


@pytest.mark.parametrize("name", ALGORITHMS)
def test_layers_name_the_algorithm_and_unpack_their_weights(name: str) -> None:
    kernel = kernel_of(ALGORITHMS[name], DOTPROD)
    assert kernel.describe()["algorithm"] == ("gemm" if name == "gemm" else "spatial_pack")
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
    "name", ["blocked", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gemm", "spatial_pack"))]
)
def test_all_kinds_of_layers_equal_onnx_runtime(name: str, target: Target, tmp_path: Path) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    network, x = chain(2), drawn((2, 3, 33, 29), spread=1.5)
    build, program = built(network, ALGORITHMS[name], "hand", tmp_path, 2, target)
    assert build.coverage is not None and build.coverage["integers"] == 1
    expected = network.reference(x)
    assert len(np.unique(expected)) > 20
    np.testing.assert_array_equal(program.run(x), expected)
