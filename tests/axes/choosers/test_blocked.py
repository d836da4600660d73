"""Which blocked algorithm computes which layer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch import nn

from dlas.axes.choosers.blocked import BlockedConvolution
from dlas.lowering.lower import lower
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.spatial_packing.form import SpatialForm
from dlas.schedules.winograd import Winograd
from dlas.stack import BFLOAT16, Conv, Target
from tests.fixtures.small_network import network
from tests.fixtures.targets import ARMV82, AVX2, AVX512, BF16, CUDA, NEON

EARLY = Conv("early", 1, 64, 56, 56, 64, 3, 3, padding=(1, 1, 1, 1))
LATE = replace(EARLY, name="late", c=512, k=512, h=7, w=7)
PACKED = SpatialPack(layout="blocked")
LARGE, SMALL = (Winograd(tile=tile, layout="blocked") for tile in (4, 2))


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON], ids=["avx512", "avx2", "neon"])
def test_large_images_take_the_large_tile(target: Target) -> None:
    assert BlockedConvolution().for_layer(EARLY, target) == LARGE


def test_large_filters_take_the_smaller_the_more_threads_share_the_memory() -> None:
    chosen = [
        BlockedConvolution().for_layer(LATE, replace(AVX2, threads=threads)) for threads in (1, 2, 4, 8, 16)
    ]
    by_filters = sorted(chosen, key=(LARGE, SMALL, PACKED).index)
    assert chosen == by_filters and chosen[0] != PACKED and chosen[-1] == PACKED
    assert BlockedConvolution().for_layer(replace(LATE, n=64), AVX2) == LARGE


@pytest.mark.parametrize(
    "conv",
    [
        replace(EARLY, strides=(2, 2)),
        replace(EARLY, r=1, s=1, padding=(0, 0, 0, 0)),
        replace(EARLY, dilation=(2, 2)),
        replace(EARLY, groups=64),
        replace(EARLY, groups=2),
    ],
    ids=["strides", "1x1", "dilation", "depthwise", "groups"],
)
def test_what_winograd_cannot_compute_well_is_packed(conv: Conv) -> None:
    assert BlockedConvolution().for_layer(conv, AVX2) == PACKED


def test_integers_are_packed_for_the_processors_dot_products() -> None:
    conv = replace(EARLY, input_type="uint8", weight_type="int8", accumulator_type="int32")
    chosen = BlockedConvolution().for_layer(conv, AVX2)
    assert isinstance(chosen, SpatialForm) and chosen.layout == "blocked" and chosen != PACKED


@pytest.mark.parametrize("kind", ["float16", BFLOAT16])
def test_in_16_bits_a_layer_is_packed_where_many_products_at_once_save_more(kind: str) -> None:
    early, late = (replace(conv, input_type=kind, weight_type=kind) for conv in (EARLY, LATE))
    assert BlockedConvolution().for_layer(early, AVX2) == LARGE, "there it is multiplied in float32"
    quick = BF16 if kind == BFLOAT16 else ARMV82
    assert BlockedConvolution().for_layer(early, quick) == LARGE
    chosen = BlockedConvolution().for_layer(late, quick)
    assert isinstance(chosen, SpatialForm) and chosen.layout == "blocked"


def test_a_gpu_packs_every_layer() -> None:
    assert BlockedConvolution().for_layer(EARLY, CUDA) == PACKED


def test_layers_say_which_algorithm_ran_with_which_options() -> None:
    convolutions = nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 16, 1)
    lowered = lower(network(nn.Sequential(*convolutions), (3, 32, 32)), BlockedConvolution(), 1, AVX2)
    fields = ("name", "algorithm", "options", "declined")
    _, second, third = (tuple(layer.get(field) for field in fields) for layer in lowered.layers)
    assert second == ("1", "winograd", {"layout": "blocked"}, None)
    assert third == ("2", "spatial_pack", {"layout": "blocked"}, None)
    assert lowered.coverage == {"convolutions": 1.0, "macs": 1.0}
