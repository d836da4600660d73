"""Networks pruned by whole channels: what is left of a weight, and that its kernel is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from torch import nn
from tvm_ffi import structural_equal

from dlas.axes.compilers.programs.tvm import TvmProgram, write_program
from dlas.axes.compression.channel_pruning import ChannelPruning
from dlas.lowering.kernels.convolutions import ConvolutionKernel, algorithm_name, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.lower import lower, schedule
from dlas.lowering.tuning.workload import Workload
from dlas.schedules.spatial_pack import SpatialPack
from dlas.sparse.channel_index import ChannelIndex
from dlas.sparse.compressed.remaining import remaining
from dlas.stack import Conv
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST, check_case
from dlas.testing.cases import CASES, Case
from tests.fixtures.convolutions import SQUARE
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import AVX2, AVX512
from tests.fixtures.tiny import tiny_data, workspace

UNEVEN = Conv("uneven", 2, 12, 9, 8, 20, 3, 3, strides=(2, 1), padding=(1, 0, 2, 1), groups=2)
INDEX = ChannelIndex()


def pruned(conv: Conv, channels: Sequence[int], filters: Sequence[int]) -> np.ndarray:
    """Return a random weight [k, c / groups, r, s] without these channels of the input and these filters."""
    shape = (conv.k, conv.c // conv.groups, conv.r, conv.s)
    weight = np.random.default_rng(0).uniform(0.5, 1, shape).astype(np.float32)
    for channel in channels:
        group, own = divmod(channel, shape[1])
        a_group = conv.k // conv.groups
        weight[group * a_group : (group + 1) * a_group, own] = 0
    weight[list(filters)] = 0
    return weight


def test_what_is_left_is_all_that_is_packed() -> None:
    weight = pruned(SQUARE, range(0, 64, 2), range(16, 64))
    dense, channels, filters, removed = INDEX.pack(weight, SQUARE)
    assert dense.size == 32 * 16 * 9
    assert channels.tolist() == [list(range(1, 64, 2))]
    assert filters.tolist() == [list(range(16))]
    assert removed.tolist() == list(range(16, 64))


def test_a_weight_without_zeros_has_nothing_removed() -> None:
    weight = pruned(SQUARE, [], [])
    dense, channels, filters = INDEX.pack(weight, SQUARE)
    np.testing.assert_array_equal(dense, SpatialPack().pack(weight, SQUARE)[0])
    assert channels.tolist() == filters.tolist() == [list(range(64))]


def test_of_nothing_one_channel_is_left() -> None:
    weight = pruned(SQUARE, [], range(64))
    dense, channels, filters, removed = INDEX.pack(weight, SQUARE)
    assert not dense.any() and channels.shape == (1, 1)
    assert set(filters.ravel()) == {64} and len(removed) == 64
    np.testing.assert_array_equal(INDEX.unpack((dense, channels, filters, removed), SQUARE), weight)


def test_groups_have_as_many_channels_and_filters_as_the_largest() -> None:
    weight = pruned(UNEVEN, [0, 3, 4, 5], [10, 11, 12, 13, 14])
    channels, filters = remaining(weight, UNEVEN)
    assert channels[:, 1].tolist() == [2, 7] and channels.shape == (2, 6)
    assert set(channels[0, 2:]) == {0}, "what fills up is a channel that is not read"
    assert filters[0, :10].tolist() == list(range(10))
    assert filters[1].tolist() == [15, 16, 17, 18, 19] + [20] * (filters.shape[1] - 5)


def test_groups_without_a_weight_are_left_out() -> None:
    depthwise = Conv("depthwise", 1, 16, 9, 9, 16, 3, 3, padding=(1, 1, 1, 1), groups=16)
    channels, filters = remaining(pruned(depthwise, [], range(4, 16)), depthwise)
    assert channels.tolist() == [[0], [1], [2], [3]]
    assert filters[:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("left", "computed"), [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (16, 16), (17, 32), (37, 48)]
)
def test_filters_are_computed_in_whole_vectors(left: int, computed: int) -> None:
    _, filters = remaining(pruned(SQUARE, [], range(left, 64)), SQUARE)
    assert filters.size == computed and (filters < 64).sum() == left


PRUNED = {
    "channels": (SQUARE, range(0, 64, 3), ()),
    "filters": (SQUARE, (), range(5, 64)),
    "both": (replace(SQUARE, strides=(2, 2)), range(10, 64), range(0, 64, 2)),
    "all": (SQUARE, (), range(64)),
    "none": (SQUARE, (), ()),
    "uneven groups": (UNEVEN, (0, 3, 4, 5), (10, 11, 12, 13, 14)),
    "1x1": (replace(SQUARE, r=1, s=1, padding=(0, 0, 0, 0), h=7, w=7), range(40), range(3, 50)),
}
SLOW = [pytest.param(dense, marks=pytest.mark.slow) for dense in ("gemm", "direct")]


@pytest.mark.parametrize("name", PRUNED)
@pytest.mark.parametrize("dense", ["spatial_pack", *SLOW])
def test_a_pruned_layer_with_its_tail_is_right(
    dense: Literal["spatial_pack", "gemm", "direct"], name: str
) -> None:
    conv, channels, filters = PRUNED[name]
    weight = pruned(conv, channels, filters)
    case = Case(replace(conv, name=name), bias=True, residual=True, activation="relu", weight=weight)
    assert check_case(ChannelIndex(dense), case, points=2) is None


def test_the_kernel_has_the_size_of_what_is_left() -> None:
    weight = pruned(SQUARE, range(0, 64, 2), range(16, 64))
    kernel = make_kernel(INDEX, SQUARE, weight, "main")
    assert algorithm_name(kernel.algorithm) == "channel_index"
    small = replace(SQUARE, c=32, k=16)
    for target in (AVX512, AVX2):
        assert kernel.algorithm.space(SQUARE, target) == SpatialPack().space(small, target)
    script = schedule_kernel(kernel, AVX512, kernel.algorithm.space(SQUARE, AVX512)[0]).script()
    assert "pad = T.sblock_alloc_buffer((1, 32, 16, 16))" in script
    assert script.count("T.sblock_alloc_buffer") == 2, "the input with its border and sums in registers alone"


def test_a_point_can_be_recorded_replayed_and_measured_on_real_lists() -> None:
    kernel = make_kernel(INDEX, SQUARE, pruned(SQUARE, [1], [2]), "main")
    workload = Workload.of(kernel)
    chosen = workload.apply(kernel.algorithm.space(SQUARE, HOST)[-1], HOST)
    replayed = workload.replay(workload.trace_of(chosen))
    assert structural_equal(replayed.mod, chosen.mod)
    _, *given, _ = workload.arguments()
    for array, packed in zip(given, kernel.packed, strict=True):
        np.testing.assert_array_equal(array, packed)


def test_only_blocked_layouts_are_declined() -> None:
    assert all(INDEX.supports(case.conv) is None for case in CASES)
    assert "NCHW16c" in str(INDEX.supports(replace(SQUARE, input_layout="NCHW16c")))


def test_it_is_one_part_with_one_option() -> None:
    found = parts.find("algorithm", "channel_index")
    assert found.cls is ChannelIndex and found.options() == {"dense": "spatial_pack"}


def test_a_network_pruned_by_channels_is_written_reloaded_and_right(tmp_path: Path) -> None:
    small, x = network(), images(2)
    ChannelPruning(level=0.5).prune(small, 0.5, tiny_data(), workspace(tmp_path))
    filters = {
        name: int(layer.weight.detach().flatten(1).any(1).sum())
        for name, layer in small.module.named_modules()
        if isinstance(layer, nn.Conv2d)
    }
    assert sum(filters.values()) == pytest.approx(0.5 * (16 * 4 + 24 * 2), abs=1)
    lowered = lower(small, INDEX, 2)
    assert not [layer for layer in lowered.layers if layer["declined"]]
    for kernel in lowered.kernels.values():
        if not isinstance(kernel, ConvolutionKernel):
            continue
        _, _, places, *removed = kernel.packed
        assert (places < kernel.conv.k).sum() == filters[kernel.conv.name]
        assert sum(map(len, removed)) == kernel.conv.k - filters[kernel.conv.name]
    write_program(lowered, schedule(lowered, HOST), HOST, tmp_path)
    assert error(TvmProgram(tmp_path, HOST).run(x), small.reference(x)) < 1e-5
