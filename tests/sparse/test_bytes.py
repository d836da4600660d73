"""Sparse convolutions of bytes: groups of entries, the instruction that adds them, and equal numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.schedules.spatial_pack import SpatialPack
from dlas.sparse.bsr_direct import BsrDirect
from dlas.sparse.compressed.dots import by_entries, entry_by_entry
from dlas.sparse.compressed.rows import SparseRows
from dlas.sparse.csr_direct import CsrDirect
from dlas.sparse.csr_gemm import CsrGemm
from dlas.sparse.csr_spatial_pack import CsrSpatialPack
from dlas.stack import Array, Conv, Target
from tests.fixtures.assembly import assembly
from tests.fixtures.convolutions import BYTES, SQUARE, UNEVEN, pruned
from tests.fixtures.targets import AVX2, AVX512, NEON

ALGORITHMS: list[SparseRows] = [CsrDirect(), BsrDirect(), CsrGemm(), CsrSpatialPack(), BsrDirect(size=3)]


def weight_of(conv: Conv, sparsity: float) -> Array:
    """Return a random weight of bytes of which a share is zero."""
    weight: Array = np.clip(np.rint(40 * pruned(conv, sparsity)), -128, 127).astype(np.int8)
    return weight


def kernel_of(
    algorithm: SparseRows, target: Target, conv: Conv = SQUARE, sparsity: float = 0.9
) -> ConvolutionKernel:
    return make_kernel(algorithm, replace(conv, **BYTES), weight_of(conv, sparsity), "main", target=target)


@hypothesis.given(lengths=st.lists(st.integers(0, 9), max_size=12), terms=st.sampled_from([2, 4]))
@hypothesis.settings(derandomize=True, deadline=None)
def test_groups_of_entries_hold_each_row_and_zeros(lengths: list[int], terms: int) -> None:
    count, draw = sum(lengths), np.random.default_rng(0)
    values = draw.integers(1, 100, (count, 2), np.int8)
    offsets = np.arange(10, 10 + count, dtype=np.int32)
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    grouped, read, begins = by_entries(values, offsets, starts, terms)
    assert np.diff(begins).tolist() == [-(-length // terms) for length in lengths]
    assert grouped.shape == (max(int(begins[-1]), 1), 2, terms) and read.shape == (len(grouped), terms)
    assert int((grouped != 0).sum()) == 2 * count
    assert set(read.ravel().tolist()) <= {*offsets.tolist(), *([] if count else [0])}
    for again, before in zip(entry_by_entry(grouped, read, begins), (values, offsets, starts), strict=True):
        np.testing.assert_array_equal(again, before)


@pytest.mark.parametrize("conv", [SQUARE, UNEVEN], ids=lambda conv: conv.name)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_weights_are_unpacked_as_they_were(algorithm: SparseRows, conv: Conv) -> None:
    for sparsity in (0.5, 0.95, 1.0):
        kernel = kernel_of(algorithm, AVX512, conv, sparsity)
        values, *_ = kernel.packed
        assert kernel.requested and values.dtype == np.int8 and values.shape[1:] == (algorithm.height, 4)
        np.testing.assert_array_equal(kernel.algorithm.unpack(kernel.packed, kernel.conv), kernel.weight)


@pytest.mark.parametrize("algorithm", ALGORITHMS[:2], ids=str)
def test_entries_are_added_four_at_a_time_and_the_filters_of_a_block_share_inputs(
    algorithm: SparseRows,
) -> None:
    text = assembly(kernel_of(algorithm, AVX512), AVX512)
    added, put_in_order = (
        len(re.findall(rf"{name}\s.*%zmm", text)) for name in ("vpdpbusd", r"vperm(?:[it]2)?b")
    )
    assert added >= 8 and added == algorithm.height * put_in_order
    assert "vpinsrb" not in text, "inputs are loaded byte by byte"


def test_processors_without_such_instructions_add_entry_by_entry() -> None:
    for target in (AVX2, NEON):
        assert kernel_of(CsrDirect(), target).algorithm == CsrDirect()
    floats = make_kernel(CsrDirect(), SQUARE, pruned(SQUARE, 0.9), "main", target=AVX512)
    assert floats.algorithm == CsrDirect()


def test_a_layer_without_zeros_is_left_to_the_dense_code_for_bytes() -> None:
    conv = replace(SQUARE, **BYTES)
    dense = np.ones((conv.k, conv.c, conv.r, conv.s), np.int8)
    by_csr, by_itself = (
        make_kernel(algorithm, conv, dense, "main", target=AVX512)
        for algorithm in (CsrDirect(), SpatialPack(layout="blocked"))
    )
    assert type(by_csr.algorithm) is type(by_itself.algorithm) is not SpatialPack
    assert not by_csr.requested and by_csr.describe()["algorithm"] == "spatial_pack"
