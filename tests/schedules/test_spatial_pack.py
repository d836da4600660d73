"""The design space of spatial pack on several processors: what fits, and who does how much."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import tvm

from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.kernels.tail import ConvolutionTail, EpilogueStep
from dlas.schedules.gemm import Gemm
from dlas.schedules.loops.registers import a_row
from dlas.schedules.loops.vectors import vector_unit
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import BFLOAT16, GENERIC, Algorithm, Conv, Decisions, Target, to_bfloat16
from dlas.testing.algorithms import HOST, check_case
from dlas.testing.cases import Case
from tests.fixtures.convolutions import SQUARE
from tests.fixtures.targets import AVX2, AVX512, NEON

TARGETS = [pytest.param(AVX512, id="avx512"), pytest.param(AVX2, id="avx2"), pytest.param(NEON, id="neon")]
BIAS = (EpilogueStep("relax.add", (("value", 0), ("operand", 0))),)


def kernel_of(conv: Conv, target: Target = GENERIC) -> ConvolutionKernel:
    weight = np.ones((conv.k, conv.c // conv.groups, conv.r, conv.s), np.float32)
    bias = np.ones((conv.k, 1, 1), np.float32)
    tail = ConvolutionTail(BIAS, [bias])
    return make_kernel(SpatialPack(layout="blocked"), conv, weight, "main", tail, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("filters", [51, 34, 13, 2])
def test_every_point_takes_filters_that_fill_no_vectors(filters: int, target: Target) -> None:
    kernel = kernel_of(Conv("odd", 1, 9, 8, 16, filters, 1, 1))
    points = kernel.algorithm.space(kernel.conv, target)
    assert points
    for point in points:
        schedule_kernel(kernel, target, point)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [56, 28, 14, 7])
def test_threads_pad_for_themselves_and_have_equal_shares(size: int, target: Target) -> None:
    kernel = kernel_of(replace(SQUARE, h=size, w=size))
    best = kernel.algorithm.space(kernel.conv, target)[0]
    script = schedule_kernel(kernel, target, best).script()
    (shares,) = re.findall(r"in T\.parallel\((\d+)\)", script)
    assert int(shares) % target.threads == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("groups", [1, 64], ids=["dense", "depthwise"])
@pytest.mark.parametrize("size", [56, 28, 14, 7])
def test_the_best_guess_has_sums_enough_to_keep_the_multipliers_busy(
    size: int, groups: int, target: Target
) -> None:
    kernel = kernel_of(replace(SQUARE, c=64, k=64, groups=groups, h=size, w=size))
    best, unit = kernel.algorithm.space(kernel.conv, target)[0], vector_unit(target)
    vectors = int(best.get("filters", 1)) * -(-int(best["lanes"]) // unit.lanes)
    sums = vectors * int(best["columns"])
    assert 7 <= sums <= unit.registers - vectors - 1


@pytest.mark.parametrize(
    ("processor", "filters", "tile"),
    [
        ("znver4", 64, (1, 14)),
        ("sapphirerapids", 64, (4, 4)),
        ("sapphirerapids", 48, (3, 7)),
        ("znver5", 48, (3, 7)),
    ],
)
def test_tiles_of_cores_with_two_multipliers_take_few_loads(
    processor: str, filters: int, tile: tuple[int, int]
) -> None:
    target = replace(AVX512, description={**AVX512.description, "mcpu": processor})
    kernel = kernel_of(Conv("pointwise", 1, 64, 56, 56, filters, 1, 1))
    best = kernel.algorithm.space(kernel.conv, target)[0]
    assert (best["filters"], best["columns"]) == tile


def order_of_loops(channels: int, size: int, filters: int) -> object:
    kernel = kernel_of(Conv("pointwise", 1, channels, size, size, filters, 1, 1))
    return kernel.algorithm.space(kernel.conv, AVX2)[0]["order"]


def test_long_pointwise_reductions_walk_by_columns_where_all_weights_stay() -> None:
    orders = [order_of_loops(c, 14, k) for c, k in ((64, 384), (640, 64), (1024, 256), (1024, 1024))]
    assert orders == ["filters", "columns", "columns", "filters"]
    assert order_of_loops(960, 7, 160) == "filters"


def test_inputs_that_no_cache_holds_are_read_once() -> None:
    orders = [order_of_loops(c, size, k) for c, size, k in ((256, 56, 64), (512, 28, 256), (64, 56, 256))]
    assert orders == ["columns", "rows", "filters"]


def test_a_point_needs_no_share_where_nothing_is_padded() -> None:
    kernel = kernel_of(Conv("pointwise", 1, 64, 14, 14, 64, 1, 1))
    assert not any("parts" in point for point in kernel.algorithm.space(kernel.conv, AVX512))


def leaves_a_remainder(point: Decisions, conv: Conv) -> bool:
    """Whether the last tile of a row is narrower than the others."""
    return a_row(conv, point) % int(point["columns"]) != 0


@pytest.mark.parametrize("size", [28, 14, 7])
@pytest.mark.parametrize("kernel_size", [1, 3])
def test_avx2_fills_its_registers_where_no_tile_that_divides_does(kernel_size: int, size: int) -> None:
    conv = replace(SQUARE, h=size, w=size, r=kernel_size, s=kernel_size, padding=(kernel_size // 2,) * 4)
    kernel = kernel_of(conv)
    best = kernel.algorithm.space(kernel.conv, AVX2)[0]
    assert leaves_a_remainder(best, conv) and 4 <= int(best["columns"]) <= 6


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stored", ["float32", "float16", BFLOAT16])
@pytest.mark.parametrize(("size", "stride"), [(3, 1), (3, 2), (5, 2), (7, 1)])
def test_depthwise_layers_read_their_input_as_it_is(
    size: int, stride: int, stored: str, target: Target
) -> None:
    strides, padding = (stride, stride), (size // 2,) * 4
    conv = replace(SQUARE, groups=64, r=size, s=size, strides=strides, padding=padding, padding_value=1.5)
    weight = np.ones((64, 1, size, size), np.float32)
    weight = to_bfloat16(weight) if stored == BFLOAT16 else weight.astype(stored)
    conv = replace(conv, input_type=stored, weight_type=stored)
    kernel = make_kernel(SpatialPack(layout="blocked"), conv, weight, "main", target=target)
    script = schedule_kernel(kernel, target, kernel.space(target)[0]).script()
    assert 'T.sblock("conv' in script and 'T.sblock("pad")' not in script
    assert re.findall(r"(\w+) = T.sblock_alloc_buffer", script) == ["conv_local"], "no copy, only sums"


BORDERS = (
    Conv("5x5, stride 2", 2, 16, 9, 11, 16, 5, 5, (2, 2), (2, 1, 3, 2), groups=16, padding_value=1.5),
    Conv("dilated", 2, 19, 7, 9, 19, 3, 3, (1, 2), (2, 3, 2, 3), (2, 3), groups=19, padding_value=-2.0),
)


@pytest.mark.parametrize("conv", BORDERS, ids=lambda conv: conv.name)
def test_borders_of_depthwise_layers_are_right(conv: Conv) -> None:
    assert check_case(SpatialPack(layout="blocked"), Case(conv, bias=True), points=1) is None


INNERMOST_LOOP = re.compile(r"^(\.L\w+):\n((?:(?!\.L).*\n)*?)\s+j\w+\s+\1\n", re.MULTILINE)


def multiplying_loops(kernel: ConvolutionKernel, target: Target, point: Decisions) -> list[str]:
    """Return the assembly of the innermost loops that multiply."""
    function = schedule_kernel(kernel, target, point)
    module = tvm.tirx.build(function, target=tvm.target.Target(target.description))
    return [body for _, body in INNERMOST_LOOP.findall(module.inspect_source("s")) if "vfmadd" in body]


def vector_sums(assembly: str) -> int:
    """Return how many registers of eight floats are added to."""
    return len(set(re.findall(r"vfmadd\w+\s.*(%ymm\d+)$", assembly, re.MULTILINE)))


REGISTERS = (
    SQUARE,
    Conv("1x1, all rows joined", 1, 64, 14, 14, 64, 1, 1),
    Conv("1x1, two rows joined", 1, 64, 56, 56, 64, 1, 1),
)


@pytest.mark.parametrize("conv", REGISTERS, ids=lambda conv: conv.name)
def test_whole_and_narrower_tiles_keep_their_sums_in_registers(conv: Conv) -> None:
    kernel = kernel_of(conv)
    best = kernel.algorithm.space(kernel.conv, AVX2)[0]
    assert leaves_a_remainder(best, conv)
    loops = multiplying_loops(kernel, AVX2, best)
    rest = a_row(conv, best) % int(best["columns"])
    assert {vector_sums(body) for body in loops} == {2 * int(best["columns"]), 2 * rest}
    assert not any("(%rsp)" in body for body in loops)


@pytest.mark.parametrize("target", TARGETS[:2])
def test_a_block_of_24_is_three_vectors_in_registers(target: Target) -> None:
    kernel = kernel_of(Conv("pointwise", 1, 96, 56, 56, 24, 1, 1), target)
    best = kernel.algorithm.space(kernel.conv, target)[0]
    assert kernel.conv.output_layout == "NCHW24c"
    loops = multiplying_loops(kernel, target, best)
    assert {vector_sums(body) for body in loops} == {3 * int(best["columns"])}
    assert not any("(%rsp)" in body for body in loops)


SAME = (1, 1, 1, 1)
REMAINDERS = (
    (SpatialPack(layout="blocked"), Conv("3x3", 2, 20, 7, 13, 40, 3, 3, padding=SAME)),
    (SpatialPack(layout="blocked"), Conv("1x1 with strides", 2, 20, 13, 14, 64, 1, 1, strides=(2, 2))),
    (SpatialPack(layout="blocked"), Conv("1x1", 2, 20, 7, 7, 40, 1, 1)),
    (SpatialPack(layout="blocked"), Conv("1x1 of joined rows", 2, 20, 32, 28, 40, 1, 1)),
    (SpatialPack(layout="blocked"), Conv("strides", 1, 16, 14, 14, 48, 3, 3, strides=(2, 2), padding=SAME)),
    (SpatialPack(layout="nchw"), Conv("3x3 in NCHW", 2, 20, 7, 13, 40, 3, 3, padding=SAME)),
    (SpatialPack(layout="nchw"), Conv("1x1 in NCHW", 2, 20, 13, 13, 64, 1, 1, strides=(2, 2))),
    (SpatialPack(layout="blocked"), Conv("groups", 2, 40, 9, 13, 80, 3, 3, padding=SAME, groups=5)),
    (SpatialPack(layout="blocked"), Conv("depthwise", 2, 19, 5, 37, 19, 3, 3, padding=SAME, groups=19)),
    (Gemm(), Conv("gemm", 2, 20, 7, 13, 40, 3, 3, padding=SAME)),
)
QUICK = 2


@pytest.mark.parametrize(
    ("algorithm", "conv"),
    [
        pytest.param(*pair, id=pair[1].name, marks=[pytest.mark.slow] if at >= QUICK else [])
        for at, pair in enumerate(REMAINDERS)
    ],
)
def test_narrower_last_tiles_are_right(algorithm: Algorithm, conv: Conv) -> None:
    read, written = algorithm.layouts(conv, HOST)
    points = algorithm.space(replace(conv, input_layout=read, output_layout=written), HOST)
    first = next(at for at, point in enumerate(points) if leaves_a_remainder(point, conv))
    case = Case(conv, bias=True, residual=True, activation="sigmoid")
    assert check_case(algorithm, case, points=first + 1) is None


ODD = (
    Conv("filters and channels", 2, 19, 9, 7, 21, 3, 3, padding=SAME),
    Conv("depthwise", 2, 19, 9, 9, 19, 3, 3, strides=(2, 2), padding=SAME, groups=19),
    Conv("strides", 1, 20, 15, 16, 24, 3, 3, strides=(2, 2), padding=SAME),
    Conv("dilation", 1, 17, 13, 13, 5, 3, 3, padding=(2, 2, 2, 2), dilation=(2, 2)),
    Conv("one vector and one channel", 2, 33, 7, 7, 17, 1, 1),
    Conv("1x1, stride 2", 1, 23, 8, 8, 40, 1, 1, strides=(2, 2)),
    Conv("few", 1, 3, 9, 9, 5, 5, 5, padding=(2, 2, 2, 2)),
    Conv("groups that divide", 2, 20, 8, 8, 40, 3, 3, padding=SAME, groups=5),
    Conv("groups that do not", 1, 21, 8, 8, 27, 3, 3, padding=SAME, groups=3),
    Conv("many columns", 1, 18, 3, 53, 18, 3, 3, padding=SAME),
    Conv("one output point", 1, 37, 3, 3, 10, 3, 3),
    Conv("1x1 of one channel", 2, 1, 12, 9, 20, 1, 1),
    Conv("a border of 1.5", 1, 19, 9, 9, 19, 3, 3, padding=SAME, groups=19, padding_value=1.5),
)
FAST = 2


@pytest.mark.parametrize(
    "conv",
    [
        pytest.param(conv, id=conv.name, marks=[pytest.mark.slow] if at >= FAST else [])
        for at, conv in enumerate(ODD)
    ],
)
def test_channels_that_fill_no_blocks_are_right(conv: Conv) -> None:
    case = Case(conv, bias=True, residual=conv.p > 1, activation="sigmoid")
    assert check_case(SpatialPack(layout="blocked"), case, points=2) is None


@pytest.mark.parametrize("conv", ODD[:FAST], ids=[conv.name for conv in ODD[:FAST]])
def test_what_lies_beyond_the_channels_changes_nothing(conv: Conv) -> None:
    kernel = kernel_of(conv)
    program = tvm.tirx.build(schedule_kernel(kernel, HOST).with_attr("global_symbol", "main"), target="llvm")
    x = np.random.default_rng(0).standard_normal(kernel.conv.input_shape).astype(np.float32)
    found = []
    for beyond in (0, np.nan):
        x[:, -1, :, :, conv.c % x.shape[-1] :] = beyond
        output = tvm.runtime.tensor(np.zeros(kernel.conv.output_shape, np.float32))
        program["main"](*map(tvm.runtime.tensor, (x, *kernel.packed, *kernel.operands)), output)
        channels = np.moveaxis(output.numpy(), 4, 2).reshape(conv.n, -1, conv.p, conv.q)
        found.append(channels[:, : conv.k])
    assert np.array_equal(*found) and np.isfinite(found[0]).all()
