from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from tvm import te

from dlas.lowering.kernels.layouts import block_array
from dlas.lowering.lower import LoweredNetwork, lower
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.winograd import Winograd
from dlas.stack import CHANGE_LAYOUT, Algorithm, Conv, Tail, Target, blocked_shape, channel_block
from tests.fixtures.lowering import Net, run
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import AVX2, CUDA, SAPPHIRE_RAPIDS


@dataclass(frozen=True)
class Blocks(Algorithm):
    """Padded 3x3 convolution with channels in blocks of 16, in and out, as plainly as it can be written."""

    def supports(self, conv: Conv) -> str | None:
        whole = (conv.r, conv.s, conv.groups, conv.c % 16, conv.k % 16) == (3, 3, 1, 0, 0)
        return None if whole else "only 3x3 with whole blocks"

    def layouts(self, conv: Conv, target: Target) -> tuple[str, str]:
        return "NCHW16c", "NCHW16c"

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        (weight,) = packed
        top, left, _, _ = conv.padding
        channel = te.reduce_axis((0, conv.c), "channel")
        r, s = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "s")

        def point(n: Any, block: Any, p: Any, q: Any, lane: Any) -> Any:
            row, column = p * conv.strides[0] + r - top, q * conv.strides[1] + s - left
            inside = te.all(row >= 0, row < conv.h, column >= 0, column < conv.w)
            pixel = te.if_then_else(inside, x[n, channel // 16, row, column, channel % 16], 0.0)
            return te.sum(pixel * weight[block * 16 + lane, channel, r, s], axis=[channel, r, s])

        return tail(te.compute(conv.output_shape, point, name="conv"))


def changes(lowered: LoweredNetwork) -> int:
    """Return how many kernels of a module move values between layouts."""
    return str(lowered.module["main"].script()).count(f"call_tir({CHANGE_LAYOUT}")


def test_a_layer_blocked_by_16_in_and_out_with_bias_and_relu(tmp_path: Path) -> None:
    plain = nn.Sequential(nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.Flatten())
    shape = (32, 9, 7)
    module, x = network(plain, shape), images(2, shape)
    lowered = lower(module, Blocks(), 2)
    (layer,) = lowered.layers
    assert (layer["input_layout"], layer["output_layout"]) == ("NCHW16c", "NCHW16c")
    assert layer["bias"] and layer["fused"] == ["Relu"] and layer["declined"] is None
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


BETWEEN: dict[str, tuple[Callable[..., torch.Tensor], int]] = {
    "nothing": (lambda y, x, norm: y, 32),
    "residual": (lambda y, x, norm: F.relu(y + x), 32),
    "max pool": (lambda y, x, norm: F.max_pool2d(y, 3, 2, 1), 32),
    "average pool": (lambda y, x, norm: F.avg_pool2d(y, 2), 32),
    "adaptive pool": (lambda y, x, norm: F.adaptive_avg_pool2d(y, 3), 32),
    "squeeze and excite": (lambda y, x, norm: y * torch.sigmoid(x.mean((2, 3), keepdim=True)), 32),
    "concatenation": (lambda y, x, norm: torch.cat([y, x], 1), 64),
    "batch norm of a concatenation": (lambda y, x, norm: F.relu(norm(torch.cat([y, x], 1))), 64),
    "per column": (lambda y, x, norm: y * torch.linspace(0, 1, y.shape[3]), 32),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_lies_between_convolutions_stays_in_blocks(name: str, tmp_path: Path) -> None:
    between, channels = BETWEEN[name]
    module, x = network(Net(between, channels)), images(2)
    lowered = lower(module, SpatialPack(layout="blocked"), 2)
    assert changes(lowered) == 0, lowered.module["main"].script()
    assert [layer["output_layout"] for layer in lowered.layers] == ["NCHW16c"] * 3
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


ODD, FEW = 40, 20
"""Channels that fill two blocks of 16 and a part of another, and a part of the only block, of 24."""


def everything(y: torch.Tensor, x: torch.Tensor, norm: nn.Module) -> torch.Tensor:
    """Return what nothing but true channels can make of values that are not numbers in those beyond."""
    gate = torch.sigmoid(x.mean((2, 3), keepdim=True))
    pooled = F.max_pool2d(y * gate / gate.exp(), 3, 2, 1) + F.avg_pool2d(x / x, 2)
    return F.hardswish(norm(pooled)) - y.mean((1, 2, 3), keepdim=True)


FILLED_UP = {
    **{name: (between, ODD) for name, (between, channels) in BETWEEN.items() if channels == 32},
    "everything": (everything, ODD),
    "everything in one block": (everything, FEW),
}


def slow_but(fast: str, names: Iterable[str]) -> list[Any]:
    return [name if name == fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", slow_but("everything in one block", FILLED_UP))
def test_channels_that_fill_no_blocks_stay_in_them(name: str, tmp_path: Path) -> None:
    between, channels = FILLED_UP[name]
    module, x = network(Net(between, channels, channels)), images(2)
    lowered = lower(module, SpatialPack(layout="blocked"), 2)
    assert between is everything or changes(lowered) == 0, lowered.module["main"].script()
    layout = "NCHW24c" if channels == FEW else "NCHW16c"
    assert [layer["output_layout"] for layer in lowered.layers[:2]] == [layout] * 2
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


class Joined(nn.Module):
    """Convolutions of so many filters each, put together and read by another one."""

    def __init__(self, filters: Sequence[int]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(3, number, 1) for number in filters)
        self.last = nn.Conv2d(sum(filters), 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([part(x) for part in self.parts], 1)
        return F.relu(self.last(joined)).mean((2, 3))


@pytest.mark.parametrize(
    ("filters", "follows"), [((16, ODD), True), pytest.param((ODD, 16), False, marks=pytest.mark.slow)]
)
def test_blocks_are_put_together_where_they_leave_no_gap(
    filters: Sequence[int], follows: bool, tmp_path: Path
) -> None:
    module, x = network(Joined(filters)), images(2)
    lowered = lower(module, SpatialPack(layout="blocked"), 2)
    assert (changes(lowered) == 0) == follows, lowered.module["main"].script()
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


OUTSIDE: dict[str, tuple[Callable[..., torch.Tensor], int]] = {
    "channel shuffle": (
        lambda y, x, norm: y.reshape(y.shape[0], 2, 16, *y.shape[2:]).transpose(1, 2).reshape(y.shape),
        32,
    ),
    "softmax": (lambda y, x, norm: torch.softmax(y, 1), 32),
    "mean over channels": (lambda y, x, norm: y - y.mean(1, keepdim=True), 32),
    "split": (lambda y, x, norm: torch.cat([y[:, :20], x[:, 20:]], 1), 32),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_cannot_follow_blocks_reads_nchw(name: str, tmp_path: Path) -> None:
    between, channels = OUTSIDE[name]
    module, x = network(Net(between, channels)), images(2)
    lowered = lower(module, SpatialPack(layout="blocked"), 2)
    assert changes(lowered) > 0
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


def test_a_layout_is_changed_once_for_all_its_readers(tmp_path: Path) -> None:
    def between(y: torch.Tensor, x: torch.Tensor, norm: nn.Module) -> torch.Tensor:
        return y + F.softmax(y, 1) + torch.softmax(2 * y, 1)

    module, x = network(Net(between)), images(1)
    lowered = lower(module, Blocks(), 1)
    assert lowered.coverage is not None and lowered.coverage["convolutions"] == 2 / 3
    assert error(run(lowered, tmp_path, x), module.reference(x)) < 1e-5


@pytest.mark.parametrize(
    ("channels", "layout"),
    [
        (32, "NCHW16c"),
        (25, "NCHW16c"),
        (24, "NCHW24c"),
        (17, "NCHW24c"),
        (16, "NCHW16c"),
        (8, "NCHW8c"),
        (5, "NCHW8c"),
        (4, "NCHW4c"),
        (3, "NCHW"),
    ],
)
def test_blocks_are_those_that_cost_least(channels: int, layout: str) -> None:
    conv = Conv("layer", 1, channels, 8, 8, channels, 1, 1)
    for algorithm in (SpatialPack(layout="blocked"), Winograd(layout="blocked")):
        assert algorithm.layouts(conv, AVX2) == (layout, layout)
    assert SpatialPack().layouts(conv, AVX2) == ("NCHW", "NCHW")


@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        pytest.param(SAPPHIRE_RAPIDS, "float32", id="two multipliers of 512 bits"),
        pytest.param(AVX2, "int8", id="dot products"),
        pytest.param(CUDA, "float32", id="gpu"),
    ],
)
def test_24_channels_have_two_blocks_where_three_vectors_are_no_gain(target: Target, dtype: str) -> None:
    conv = Conv("layer", 1, 24, 8, 8, 24, 1, 1, input_type=dtype, weight_type=dtype)
    assert SpatialPack(layout="blocked").layouts(conv, target) == ("NCHW16c", "NCHW16c")


def test_shapes_follow_layouts() -> None:
    conv = Conv("layer", 2, 32, 9, 8, 64, 3, 3, strides=(2, 1), padding=(1, 1, 1, 1))
    assert (conv.input_shape, conv.output_shape) == ((2, 32, 9, 8), (2, 64, 5, 8))
    blocked = replace(conv, input_layout="NCHW8c", output_layout="NCHW16c")
    assert (blocked.input_shape, blocked.output_shape) == ((2, 4, 9, 8, 8), (2, 4, 5, 8, 16))
    assert blocked_shape((1, 1, 9, 8), "NCHW8c") == (1, 1, 9, 8, 1)
    assert blocked_shape((2, 17, 9, 8), "NCHW16c") == (2, 2, 9, 8, 16)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW0c", "NCHWc", "nchw16c"])
def test_an_unknown_layout_is_quoted(layout: str) -> None:
    with pytest.raises(ValueError, match=layout):
        channel_block(layout)


def test_arrays_go_to_blocks_as_they_broadcast() -> None:
    full = np.arange(2 * 8 * 3 * 4, dtype=np.float32).reshape(2, 8, 3, 4)
    assert block_array(full, "NCHW").shape == full.shape
    blocked = block_array(full, "NCHW4c")
    assert blocked.shape == (2, 2, 3, 4, 4)
    assert np.array_equal(blocked[1, 1, 2, 3], full[1, 4:, 2, 3])
    bias, scale = np.ones((8, 1, 1), np.float32), np.ones(4, np.float32)
    assert block_array(bias, "NCHW4c").shape == (1, 2, 1, 1, 4)
    assert block_array(scale, "NCHW4c").shape == (1, 1, 1, 4, 1)
    assert block_array(bias[:5], "NCHW4c").reshape(-1).tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
