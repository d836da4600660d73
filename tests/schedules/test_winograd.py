"""What is special about Winograd's convolution: its matrices, its tiles and its rounding."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from dlas.errors import InputError
from dlas.schedules.winograd import KERNEL, POINTS, Winograd, cook_toom
from dlas.stack import Conv
from dlas.study import parts
from dlas.testing.algorithms import check_algorithm, check_case
from dlas.testing.cases import CASES, Case

PLAIN = Conv("plain", 1, 16, 8, 8, 16, 3, 3)


@pytest.mark.parametrize("tile", POINTS)
def test_matrices_compute_a_convolution_exactly(tile: int) -> None:
    b, g, a = cook_toom(POINTS[tile])
    assert (b.shape, g.shape, a.shape) == ((tile + 2, tile + 2), (tile + 2, 3), (tile, tile + 2))
    draw = np.random.default_rng(0)
    row, kernel = draw.integers(-99, 99, tile + 2), draw.integers(-99, 99, KERNEL)
    outputs = a @ ((g @ kernel) * (b @ row))
    assert outputs.tolist() == np.correlate(row, kernel).tolist()


def test_the_small_tile_keeps_the_contract() -> None:
    edges = {"odd sizes", "asymmetric padding", "bias, residual, relu"}
    cases = [case for case in CASES if case.conv.name in edges]
    assert len(cases) == len(edges)
    assert check_algorithm(Winograd(tile=2), cases=cases) == {}


@pytest.mark.parametrize("tile", POINTS)
def test_many_channels_round_as_little_as_is_stated(tile: Literal[2, 4]) -> None:
    assert check_case(Winograd(tile), Case(replace(PLAIN, c=512))) is None


def test_another_tile_is_one_clear_message() -> None:
    with pytest.raises(InputError, match="'winograd': option tile = 3: Input should be 2 or 4"):
        parts.find("algorithm", "winograd").validate("winograd", {"tile": 3})


@pytest.mark.parametrize(
    ("conv", "reason"),
    [
        (replace(PLAIN, r=5, s=5), "5x5"),
        (replace(PLAIN, strides=(1, 2)), r"strides .* \(1, 2\)"),
        (replace(PLAIN, dilation=(2, 2)), r"dilations .* \(2, 2\)"),
        (replace(PLAIN, input_type="uint8", weight_type="int8", accumulator_type="int32"), "int32"),
        (replace(PLAIN, input_layout="NCHW16c"), "NCHW16c"),
    ],
)
def test_what_it_cannot_do_it_declines(conv: Conv, reason: str) -> None:
    assert Winograd().supports(PLAIN) is None
    declined = Winograd().supports(conv)
    assert declined is not None
    assert re.search(reason, declined)
