from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dlas.axes.compilers.programs.tvm import TvmProgram, write_program
from dlas.lowering.lower import LoweredNetwork, lower, schedule
from dlas.schedules.direct import Direct
from dlas.testing.algorithms import HOST
from tests.fixtures.small_network import error, images, network

SHAPE = (4, 9, 8)


class Pads(nn.Module):
    """Does what the function says with a convolution that pads by ``padding`` itself."""

    def __init__(
        self, use: Callable[[nn.Module, torch.Tensor], torch.Tensor], padding: int = 0, channels: int = 4
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 4, 3, padding=padding)
        self.use = use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.use(self.conv, x).flatten(1)


def lowered_rightly(module: nn.Module, folder: Path) -> LoweredNetwork:
    padded, x = network(module, SHAPE), images(2, SHAPE)
    lowered = lower(padded, Direct(), 2)
    write_program(lowered, schedule(lowered, HOST), HOST, folder)
    assert error(TvmProgram(folder, HOST).run(x), padded.reference(x)) < 1e-5
    return lowered


@pytest.mark.parametrize(
    ("sides", "value", "own", "padding"),
    [
        ((0, 1, 2, 3), 0.0, 0, (2, 0, 3, 1)),
        ((1, 1, 1, 1), 2.5, 0, (1, 1, 1, 1)),
        ((1, 0, 0, 2), 0.0, 1, (1, 2, 3, 1)),
    ],
    ids=["zeros", "another value", "both pad zeros"],
)
def test_a_border_in_front_of_a_convolution_becomes_its_padding(
    sides: tuple[int, ...], value: float, own: int, padding: tuple[int, ...], tmp_path: Path
) -> None:
    lowered = lowered_rightly(Pads(lambda conv, x: conv(F.pad(x, sides, value=value)), own), tmp_path)
    (layer,) = lowered.layers
    assert (layer["h"], layer["w"]) == SHAPE[1:]
    assert (layer["padding"], layer["padding_value"]) == (padding, value)
    assert "pad" not in lowered.module.script().partition("def main")[2]


def read_twice(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = F.pad(x, (1, 1, 1, 1), value=1.5)
    convolved: torch.Tensor = conv(y)
    return convolved + F.max_pool2d(y, 3, 1)


@pytest.mark.parametrize(
    ("use", "own", "channels"),
    [
        (read_twice, 0, 4),
        (lambda conv, x: conv(F.pad(x, (1, 1, 1, 1), value=2.5)), 1, 4),
        (lambda conv, x: conv(F.pad(x, (-1, 1, 1, 1))), 0, 4),
        (lambda conv, x: conv(F.pad(x, (1, 1, 1, 1), mode="reflect")), 0, 4),
        (lambda conv, x: conv(F.pad(x, (0, 0, 0, 0, 1, 1))), 0, 6),
    ],
    ids=["read twice", "two values", "cropped", "reflected", "channels"],
)
def test_other_borders_stay(
    use: Callable[[nn.Module, torch.Tensor], torch.Tensor], own: int, channels: int, tmp_path: Path
) -> None:
    (layer,) = lowered_rightly(Pads(use, own, channels), tmp_path).layers
    assert layer["padding"] == (own,) * 4
    assert (layer["c"], layer["h"], layer["w"]) != SHAPE


def test_a_border_that_a_row_cannot_tell_stays() -> None:
    infinite = Pads(lambda conv, x: conv(F.pad(x, (1, 1, 1, 1), value=-np.inf)))
    (layer,) = lower(network(infinite, SHAPE), Direct(), 1).layers
    assert layer["padding"] == (0, 0, 0, 0)
