"""What is special about sparse convolutions: their format, their loops, and the work of each thread."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import nn
from tvm_ffi import structural_equal

from dlas.axes.compilers.programs.tvm import TvmProgram, write_program
from dlas.errors import InputError
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.lower import lower, schedule
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.sparse.bsr_direct import BsrDirect
from dlas.sparse.compressed.csr import Csr, balanced_order
from dlas.sparse.compressed.patches import Patches
from dlas.sparse.compressed.planes import WIDEST, Planes
from dlas.sparse.compressed.rows import SparseRows, channels_a_block
from dlas.sparse.compressed.tiles import Tiles
from dlas.sparse.csr_direct import CsrDirect
from dlas.sparse.csr_gemm import CsrGemm
from dlas.sparse.csr_spatial_pack import CsrSpatialPack
from dlas.stack import Conv, Target, csr_bytes
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST, check_case, lower_case
from dlas.testing.cases import Case, tensors
from tests.fixtures.convolutions import SQUARE, UNEVEN, convolutions, pruned
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import AVX2, AVX512, NEON

MATRIX = np.array([[0, 2, 0, 3], [0, 0, 0, 0], [5, 0, 7, 11], [1, 2, 3, 4]], np.float32)
INPUTS: list[type[Planes]] = [Planes, Patches, Tiles]
ALGORITHMS: list[SparseRows] = [CsrDirect(), BsrDirect(), CsrGemm(), CsrSpatialPack(), BsrDirect(size=3)]


def test_only_nonzeros_are_kept_row_by_row() -> None:
    csr = Csr.of(MATRIX)
    assert csr.values.tolist() == [2, 3, 5, 7, 11, 1, 2, 3, 4]
    assert csr.columns.tolist() == [1, 3, 0, 2, 3, 0, 1, 2, 3]
    assert csr.starts.tolist() == [0, 2, 2, 5, 9]
    assert (csr.rows, csr.width, csr.density) == (4, 4, 9 / 16)
    np.testing.assert_array_equal(csr.dense(), MATRIX)


def test_a_block_is_kept_whole_or_left_out() -> None:
    blocks = MATRIX.reshape(2, 2, 4).transpose(0, 2, 1)
    csr = Csr.of(blocks)
    assert csr.values.tolist() == [[2, 0], [3, 0], [5, 1], [0, 2], [7, 3], [11, 4]]
    assert (csr.starts.tolist(), csr.density) == ([0, 2, 6], 6 / 8)
    np.testing.assert_array_equal(csr.dense(), blocks)


def test_bytes_are_those_that_rows_of_results_tell() -> None:
    assert Csr.of(MATRIX).stored_bytes == csr_bytes(4, 9) == 9 * 8 + 5 * 4
    assert Csr.of(np.zeros((3, 5), np.float32)).stored_bytes == csr_bytes(3, 0)
    assert Csr.of(MATRIX.reshape(2, 2, 4).transpose(0, 2, 1)).stored_bytes == 6 * (2 * 4 + 4) + 3 * 4


GOOD = Csr.of(MATRIX)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"columns": GOOD.columns[:-1]}, r"values \[9\] do not match 8 columns"),
        ({"values": GOOD.values.reshape(9, 1, 1)}, r"values \[9, 1, 1\] do not match"),
        ({"columns": GOOD.columns.astype(np.float32)}, r"columns are float32 \[9\], not one row of integers"),
        ({"starts": GOOD.starts.reshape(5, 1)}, r"starts are int32 \[5, 1\]"),
        ({"starts": GOOD.starts[:0]}, r"begin and end with \[\], not with 0 and the 9"),
        ({"starts": np.array([0, 2, 2, 5, 8])}, r"begin and end with \[0, 8\], not with 0 and the 9"),
        ({"starts": np.array([1, 2, 2, 5, 9])}, r"begin and end with \[1, 9\]"),
        ({"starts": np.array([0, 5, 2, 5, 9])}, "row 1 ends before it starts"),
        ({"width": 3}, "column of entry 1 is not one of 0 to 2"),
        ({"columns": np.array([1, 3, -1, 2, 3, 0, 1, 2, 3])}, "column of entry 2 is not one of 0 to 3"),
        (
            {"columns": np.array([1, 3, 0, 2, 2, 0, 1, 2, 3])},
            "column of entry 4 is not behind the one before",
        ),
        ({"values": np.where(GOOD.values == 7, np.nan, GOOD.values)}, "value of entry 3 is not a finite"),
        ({"values": np.where(GOOD.values == 1, np.inf, GOOD.values)}, "value of entry 5 is not a finite"),
    ],
)
def test_what_a_kernel_could_not_trust_is_refused(change: dict[str, Any], complaint: str) -> None:
    GOOD.check()
    with pytest.raises(ValueError, match=f"not compressed sparse rows: .*{complaint}"):
        replace(GOOD, **change).check()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_a_weight_that_is_no_number_reaches_no_kernel(algorithm: SparseRows) -> None:
    weight = pruned(SQUARE, 0.9)
    weight[3, 1, 2, 0] = np.nan
    with pytest.raises(ValueError, match="is not a finite number"):
        make_kernel(algorithm, SQUARE, weight, "square")


@pytest.mark.parametrize("threads", [2, 4, 8])
@hypothesis.given(lengths=st.lists(st.integers(0, 1000), min_size=64, max_size=64))
@hypothesis.settings(derandomize=True, deadline=None)
def test_every_thread_has_its_share_however_uneven_rows_are(threads: int, lengths: list[int]) -> None:
    order = balanced_order(np.array(lengths))
    assert sorted(order) == list(range(64))
    work = np.array(lengths)[order].reshape(threads, -1).sum(axis=1)
    assert work.max() - work.min() <= 2 * max(lengths)


def test_long_rows_next_to_each_other_go_to_different_threads() -> None:
    lengths = np.where(np.arange(64) < 16, 500, 4)
    assert lengths.reshape(2, -1).sum(axis=1).tolist() == [8064, 128]
    assert lengths[balanced_order(lengths)].reshape(2, -1).sum(axis=1).tolist() == [4096, 4096]


@pytest.mark.parametrize("algorithm", [CsrDirect(), CsrGemm(), CsrSpatialPack()], ids=str)
def test_threads_share_the_nonzeros_of_a_weight_with_a_few_dense_filters(algorithm: SparseRows) -> None:
    weight = pruned(SQUARE, 0.98)
    weight[: SQUARE.k // 4] = 1
    *_, starts, filters = algorithm.pack(weight, SQUARE)
    lengths = np.diff(starts).reshape(-1, len(filters)).sum(axis=0)
    assert lengths.sum() == np.count_nonzero(weight)
    for threads in (2, 4, 8):
        work, naive = (
            each.reshape(threads, -1).sum(axis=1) for each in (lengths, lengths[np.argsort(filters[:, 0])])
        )
        assert work.max() < 1.02 * work.mean()
        assert naive.max() > 1.8 * naive.mean()


@pytest.mark.parametrize("conv", [SQUARE, replace(SQUARE, h=7, w=7), replace(SQUARE, h=56, w=56)])
@pytest.mark.parametrize("algorithm", ALGORITHMS[:4], ids=str)
def test_the_best_guess_leaves_no_thread_without_work(algorithm: SparseRows, conv: Conv) -> None:
    for target in (AVX512, AVX2, NEON):
        kernel = make_kernel(algorithm, conv, pruned(conv, 0.9), "main")
        script = schedule_kernel(kernel, target, algorithm.space(conv, target)[0]).script()
        shares = [int(extent) for extent in re.findall(r"n_band_row_0_fused in T.parallel\((\d+)\)", script)]
        assert len(shares) == 1 and shares[0] % target.threads == 0


@pytest.mark.parametrize("inputs", INPUTS)
@hypothesis.given(convolutions())
@hypothesis.settings(derandomize=True, deadline=None)
def test_an_offset_leads_from_every_output_to_its_input(inputs: type[Planes], conv: Conv) -> None:
    planes = inputs(conv, 30)
    top, left, bottom, right = conv.padding
    image = np.arange(1, conv.c * conv.h * conv.w + 1).reshape(conv.c, conv.h, conv.w)
    padded = np.pad(image, ((0, 0), (top, bottom), (left, right)))
    shape = planes.band
    for band in range(planes.bands):
        slab, place = (band, 0) if planes.slabs > 1 else (0, band * shape.step)
        rows, columns = planes.output(band, np.arange(shape.rows)[:, None], np.arange(shape.columns))
        places = place + np.arange(shape.rows)[:, None] * shape.pitch + np.arange(shape.columns)
        laid = laid_out(planes, padded, slab).ravel()
        for (c, r, s), offset in np.ndenumerate(planes.offsets()):
            row, column = rows * conv.strides[0] + r * conv.dilation[0], columns * conv.strides[1]
            np.testing.assert_array_equal(
                laid[offset + places], padded[c, row, column + s * conv.dilation[1]]
            )


def laid_out(planes: Planes, padded: np.ndarray, slab: int) -> np.ndarray:
    """Return a slab [c, phases, phases, plane] of an image with its border; -1 where it has no number."""
    strides, own = planes.conv.strides, divmod(slab, planes.across[1])
    laid = np.full((len(padded), *planes.phases, planes.plane), -1)
    for i, j in np.ndindex(planes.phases):
        top = own[0] * planes.band.rows * strides[0] + planes.begin(0, i)
        left = own[1] * planes.band.columns * strides[1] + planes.begin(1, j)
        part = padded[:, top :: strides[0], left :: strides[1]][:, : planes.rows, : planes.columns]
        rows = laid[:, i, j, : planes.rows * planes.band.pitch].reshape(len(padded), planes.rows, -1)
        rows[:, : part.shape[1], : part.shape[2]] = part
        laid[:, i, j, : rows[0].size] = rows.reshape(len(padded), -1)
    return laid


@pytest.mark.parametrize("most", [30, 6, 1])
@pytest.mark.parametrize(
    ("size", "kernel"),
    [((56, 56), 3), ((28, 28), 3), ((14, 14), 3), ((7, 7), 3), ((13, 13), 1), ((1, 500), 3)],
)
@pytest.mark.parametrize("inputs", INPUTS)
def test_bands_are_whole_tiles_and_waste_little(
    inputs: type[Planes], size: tuple[int, int], kernel: int, most: int
) -> None:
    border = kernel // 2
    planes = inputs(Conv("", 1, 8, *size, 8, kernel, kernel, padding=(border,) * 4), most)
    band = planes.band
    assert (band.rows * planes.across[0], band.columns * planes.across[1]) == size
    assert band.places >= (band.rows - 1) * band.pitch + band.columns
    assert any(band.vectors % tile == 0 for tile in range(1, most + 1) if tile >= min(4, most))
    assert band.vectors * WIDEST * planes.bands < 1.4 * size[0] * size[1]


def test_patches_are_written_once_for_each_column_of_the_kernel() -> None:
    patches, planes = (inputs(replace(SQUARE, h=56, w=56), 30) for inputs in (Patches, Planes))
    assert patches.band.pitch == 56 and planes.band.pitch == 58
    assert patches.channel == 3 * (patches.band.rows + 2) * 56
    # Rows are a multiple of half a vector apart, and planes of a whole one.
    assert not np.any(patches.offsets() % 8)
    assert np.mean(planes.offsets() % 8 != 0) > 0.6


def test_tiles_of_a_large_image_are_as_wide_as_high() -> None:
    tiles = Tiles(replace(SQUARE, h=224, w=224), 30)
    assert tiles.band.columns < 224
    planes = Planes(tiles.conv, 30)
    assert tiles.bands * tiles.under_a_band < planes.bands * planes.under_a_band


def test_channels_are_walked_in_blocks_where_rows_have_entries_enough() -> None:
    planes = Planes(replace(SQUARE, c=256), 30)
    few, some, all_ = (channels_a_block(planes, 256 * 9 * density) for density in (0.001, 0.02, 1.0))
    assert few == 256 > some > all_
    assert 4 * all_ * planes.under_a_band <= 32_768, "more than a first-level cache"
    kernel = make_kernel(CsrDirect(), planes.conv, pruned(planes.conv, 0.5), "main")
    _, _, starts, filters = kernel.packed
    assert len(starts) - 1 == -(-256 // all_) * len(filters)


@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_any_sparsity_is_right(algorithm: SparseRows, sparsity: float) -> None:
    assert check_case(algorithm, Case(UNEVEN, bias=True, activation="relu", sparsity=sparsity)) is None


def test_a_layer_without_zeros_is_left_to_dense_code() -> None:
    case = Case(UNEVEN, bias=True, sparsity=None)
    weight = tensors(case, 0)["weight"]
    layer = make_kernel(CsrDirect(), UNEVEN, weight, "main").describe()
    assert (layer["algorithm"], layer["options"]) == ("spatial_pack", {"layout": "blocked"})
    assert layer["declined"] is None
    assert lower_case(CsrDirect(), case).coverage == {"convolutions": 0.0, "macs": 0.0}
    assert check_case(CsrDirect(), case, points=1) is None
    weight[0, 0, 0, 0] = 0
    assert make_kernel(CsrDirect(), UNEVEN, weight, "main").describe()["algorithm"] == "csr_direct"


def test_several_blocks_of_channels_are_summed() -> None:
    conv = replace(UNEVEN, c=160, h=14, w=14)
    _, _, starts, filters = CsrDirect().pack(pruned(conv, 0.5), conv)
    assert len(starts) - 1 > len(filters)
    assert check_case(CsrDirect(), Case(conv, True, True, "relu", sparsity=0.5)) is None


def loops_over_entries(kernel: ConvolutionKernel, target: Target) -> list[str]:
    """Return the ends of the loops over a row's entries, in the minimal schedule and in a tile's."""
    points = [None, *kernel.algorithm.space(kernel.conv, target)[:1]]
    scripts = [schedule_kernel(kernel, target, point).script() for point in points]
    assert not any(" if " in script for script in scripts)
    return [end for script in scripts for end in re.findall(r"in range\((packed2\[.*)\):", script)]


@pytest.mark.parametrize("algorithm", ALGORITHMS[:4], ids=str)
def test_the_loop_over_a_row_ends_with_the_row(algorithm: SparseRows) -> None:
    ends = loops_over_entries(make_kernel(algorithm, SQUARE, pruned(SQUARE, 0.9), "main"), HOST)
    assert len(ends) == 2
    assert all(re.fullmatch(r"packed2\[.* \+ 1\] - packed2\[.*\]", end) for end in ends)


@pytest.mark.parametrize("algorithm", ALGORITHMS[:4], ids=str)
def test_an_input_that_needs_no_border_is_read_where_it_is(algorithm: SparseRows) -> None:
    pointwise = Conv("pointwise", 1, 16, 56, 56, 8, 1, 1)
    for conv, laid in ((pointwise, False), (replace(pointwise, h=7, w=7), True), (SQUARE, True)):
        script = make_kernel(algorithm, conv, pruned(conv, 0.5), "main").function.script()
        assert ("planes = " in script) is laid


@pytest.mark.parametrize("algorithm", [CsrGemm(), CsrSpatialPack()], ids=str)
def test_a_thread_writes_the_inputs_that_it_computes_with_or_all_threads_share_them(
    algorithm: SparseRows,
) -> None:
    target = replace(HOST, threads=1)
    for size, of_its_own in ((56, True), (14, False)):
        conv = replace(SQUARE, h=size, w=size)
        kernel = make_kernel(algorithm, conv, pruned(conv, 0.9), "main")
        script = schedule_kernel(kernel, target, algorithm.space(conv, target)[0]).script()
        assert script.count("T.parallel(") == (1 if of_its_own else 2)


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_sums_of_a_tile_fit_in_the_registers(algorithm: SparseRows, target: Target) -> None:
    registers = 16 if target is AVX2 else 32
    for conv in (SQUARE, replace(SQUARE, h=56, w=56), replace(SQUARE, h=7, w=7, strides=(2, 2))):
        points = algorithm.space(conv, target)
        assert points
        assert all(int(point["vectors"]) * algorithm.height < registers for point in points)


@pytest.mark.parametrize(("columns", "written"), [(56, 8), (28, 4), (14, 14)])
def test_a_row_is_written_in_parts_of_the_vectors_that_summed_it(columns: int, written: int) -> None:
    conv = replace(SQUARE, h=columns, w=columns)
    kernel = make_kernel(CsrDirect(), conv, pruned(conv, 0.9), "main")
    script = schedule_kernel(kernel, AVX2, kernel.algorithm.space(conv, AVX2)[0]).script()
    assert re.findall(r"T\.vectorized\((\d+)\)", script)[-1] == str(written)


def test_blocks_store_no_more_than_their_network_kept() -> None:
    weight = pruned(replace(SQUARE, k=16), 0.9).repeat(4, axis=0)
    values, *_ = BsrDirect().pack(weight, SQUARE)
    assert values.size == np.count_nonzero(weight)
    finer, *_ = BsrDirect(size=2).pack(weight, SQUARE)
    assert finer.size == values.size


def test_depthwise_and_blocked_layouts_are_declined() -> None:
    for algorithm in ALGORITHMS:
        depthwise = algorithm.supports(replace(SQUARE, groups=64))
        assert depthwise is not None and "3x3" in depthwise
        blocked = algorithm.supports(replace(SQUARE, input_layout="NCHW16c"))
        assert blocked is not None and "NCHW16c" in blocked


def test_a_block_of_one_filter_is_one_clear_message() -> None:
    with pytest.raises(InputError, match=r"'bsr_direct': option size = 1: .* greater than or equal to 2"):
        parts.find("algorithm", "bsr_direct").validate("bsr_direct", {"size": 1})


def test_a_point_can_be_recorded_replayed_and_measured_on_real_rows() -> None:
    kernel = make_kernel(CsrDirect(), SQUARE, pruned(SQUARE, 0.9), "main")
    workload = Workload.of(kernel)
    point = kernel.algorithm.space(SQUARE, HOST)[-1]
    chosen = workload.apply(point, HOST)
    replayed = workload.replay(workload.trace_of(chosen))
    assert structural_equal(replayed.mod, chosen.mod)
    finished = workload.finish(replayed, HOST)
    assert structural_equal(
        finished,
        schedule_kernel(kernel, HOST, point).with_attr("global_symbol", MAIN).without_attr("op_pattern"),
    )
    _, *given, _ = workload.arguments()
    for array, packed in zip(given, kernel.packed, strict=True):
        np.testing.assert_array_equal(array, packed)


@pytest.mark.parametrize("algorithm", ALGORITHMS[:4], ids=str)
def test_a_pruned_network_is_written_reloaded_and_right(algorithm: SparseRows, tmp_path: Path) -> None:
    small, x = network(), images(2)
    with torch.no_grad():
        for layer in small.module.modules():
            if isinstance(layer, nn.Conv2d) and layer.groups == 1:
                layer.weight[
                    torch.rand(layer.weight.shape, generator=torch.Generator().manual_seed(0)) < 0.8
                ] = 0
    lowered = lower(small, algorithm, 2)
    declined = [layer["name"] for layer in lowered.layers if layer["declined"]]
    assert declined == ["depthwise"]
    write_program(lowered, schedule(lowered, HOST), HOST, tmp_path)
    assert error(TvmProgram(tmp_path, HOST).run(x), small.reference(x)) < 1e-5
