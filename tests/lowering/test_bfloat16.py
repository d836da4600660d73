"""Networks in bfloat16: stored in 16 bits, multiplied by dot products or in float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm import relax

from dlas.axes.compression.bfloat16 import Bfloat16
from dlas.lowering.graph.bfloat16 import NARROW, WIDEN
from dlas.lowering.kernels.convolutions import ConvolutionKernel
from dlas.lowering.kernels.kernel import Kernel, schedule_kernel
from dlas.lowering.lower import LoweredNetwork, lower, lower_graph, schedule
from dlas.networks.onnx.network import OnnxNetwork
from dlas.schedules.loops.dot_forms import ByDotProducts
from dlas.schedules.loops.dot_products import IN_BFLOAT16, dot_products
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import BFLOAT16, Array, Conv, Target, from_bfloat16, to_bfloat16
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST, run_here
from dlas.testing.cases import CASES, Case, expected, graph, tensors
from tests.fixtures.compressed import check_build, compressed
from tests.fixtures.elementwise import computed
from tests.fixtures.rounding import ROUNDED
from tests.fixtures.small_network import network

NATIVE = parts.make("hardware", "local_cpu", {}).target()
TARGETS = {"generic": HOST, "native": NATIVE}
TYPES = (BFLOAT16, BFLOAT16, "float32")
ALGORITHMS = (
    *("direct", "gemm", "spatial_pack", "blocked", "winograd"),
    *("csr_direct", "csr_gemm", "csr_spatial_pack", "bsr_direct", "channel_index"),
)
OTHERS = (("direct", "untuned"), ("gemm", "hand"), ("blocked", "hand"), ("csr_direct", "hand"))
QUICK = {("winograd", "padded"), ("blocked", "1x1, stride 2"), ("blocked", "groups"), ("gemm", "odd sizes")}


def test_kernels_round_as_arrays_are_rounded() -> None:
    draw = np.random.default_rng(0)
    bits = np.concatenate([np.array([*ROUNDED], np.uint32), draw.integers(0, 2**32, 1000, np.uint32)])
    numbers = bits.view(np.float32)
    found = computed(NARROW, numbers, "uint16")
    np.testing.assert_array_equal(found, to_bfloat16(numbers))
    np.testing.assert_array_equal(computed(WIDEN, found, "float32"), from_bfloat16(found))


def lowered_in_bfloat16(name: str, case: Case, arrays: dict[str, Array], target: Target) -> LoweredNetwork:
    """Return one convolution as a network in bfloat16."""
    algorithm = parts.make("algorithm", name, {})
    return lower_graph(replace(graph(case, arrays), halves=BFLOAT16), algorithm, target)


def plain(conv: Conv) -> bool:
    """Whether Winograd can compute a convolution."""
    return (conv.r, conv.s, *conv.strides, *conv.dilation) == (3, 3, 1, 1, 1, 1)


def by_best_guess(kernel: Kernel, target: Target) -> Any:
    space = kernel.space(target)
    return schedule_kernel(kernel, target, space[0] if space else None)


@pytest.mark.parametrize(
    ("name", "target", "case"),
    [
        pytest.param(
            *(name, target, case),
            id=f"{name}-{target}-{case.conv.name}",
            marks=() if target == "native" and (name, case.conv.name) in QUICK else pytest.mark.slow,
        )
        for name in ALGORITHMS
        for target in TARGETS
        for case in CASES
    ],
)
def test_convolutions_equal_those_of_rounded_numbers(name: str, target: str, case: Case) -> None:
    on, arrays = TARGETS[target], tensors(case, 0)
    for operand in ("x", "weight"):
        arrays[operand] = from_bfloat16(to_bfloat16(arrays[operand]))
    lowered = lowered_in_bfloat16(name, case, arrays, on)
    (kernel,) = (each for each in lowered.kernels.values() if isinstance(each, ConvolutionKernel))
    conv = kernel.conv
    assert (conv.input_type, conv.weight_type, conv.accumulator_type) == TYPES
    assert kernel.declined is None or conv.depthwise or (name == "winograd" and not plain(conv))
    arguments, right = [arrays["x"], *lowered.parameters.values()], expected(case, arrays)
    largest = float(np.abs(right).max()) or 1.0
    # What is multiplied is exact; sums in float32 are not rounded to bfloat16, since nothing reads them.
    for how in (schedule_kernel, by_best_guess):
        found = run_here(schedule(lowered, on, how), arguments, on)
        assert float(np.abs(found - right).max()) <= kernel.algorithm.tolerance * largest, how.__name__


def test_sums_that_are_read_again_are_stored_rounded() -> None:
    case = next(case for case in CASES if case.conv.name == "bias and relu")
    arrays = tensors(case, 0)
    given = graph(case, arrays)
    n, k, p, q = case.conv.output_shape
    last = relax.Var("moved", relax.TensorType((n, p, q, k), "float32"))
    moved = relax.op.permute_dims(given.output, [0, 2, 3, 1])
    given = replace(given, bindings=[*given.bindings, (last, moved)], output=last, halves=BFLOAT16)
    lowered = lower_graph(given, SpatialPack(), HOST)
    (kernel,) = (each for each in lowered.kernels.values() if isinstance(each, ConvolutionKernel))
    assert kernel.conv.output_type == BFLOAT16
    for operand in ("x", "weight"):
        arrays[operand] = from_bfloat16(to_bfloat16(arrays[operand]))
    found = run_here(schedule(lowered, HOST), [arrays["x"], *lowered.parameters.values()])
    right = expected(case, arrays).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(from_bfloat16(to_bfloat16(found)), found)
    gap = np.abs(found - right)
    assert (gap <= 2.0**-8 * np.abs(right) + 1e-5 * np.abs(right).max()).all() and gap.max() > 0


def test_what_has_no_kernel_for_it_says_so() -> None:
    case = next(case for case in CASES if case.conv.name == "stride 2")
    lowered = lower_graph(
        replace(graph(case, tensors(case, 0)), halves=BFLOAT16), parts.make("algorithm", "winograd", {})
    )
    (layer,) = lowered.layers
    assert layer["algorithm"] == "direct" and "only strides of 1" in str(layer["declined"])


@pytest.fixture(scope="module")
def half() -> OnnxNetwork:
    return compressed(Bfloat16())


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("spatial_pack", "hand"),
        *(pytest.param(name, how, marks=pytest.mark.slow) for name, how in OTHERS),
    ],
)
def test_a_network_in_bfloat16_is_right(name: str, how: str, half: OnnxNetwork, tmp_path: Path) -> None:
    check_build(half, name, how, TYPES, tmp_path)


def test_kernels_store_16_bits_and_use_the_targets_dot_products(half: OnnxNetwork) -> None:
    lowered = lower(half, SpatialPack(layout="blocked"), 1, NATIVE)
    stored = sum(array.nbytes for array in lowered.parameters.values())
    single = lower(network(), SpatialPack(layout="blocked"), 1, NATIVE)
    assert stored < 0.6 * sum(array.nbytes for array in single.parameters.values())
    kernels = [each for each in lowered.kernels.values() if isinstance(each, ConvolutionKernel)]
    dense = [kernel for kernel in kernels if not kernel.conv.depthwise]
    by_dots = [isinstance(kernel.algorithm, ByDotProducts) for kernel in dense]
    assert by_dots == [dot_products(kernel.conv, NATIVE) is IN_BFLOAT16 for kernel in dense]
