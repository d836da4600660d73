"""Roofline bounds: each type has the bytes and the rate that are its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.roofline import SIZES, Roof
from benchmarks.roofs import bounds
from dlas.stack import BFLOAT16, Layer, describe_layer
from tests.fixtures.convolutions import BYTES, SQUARE

ROOF = Roof(100e9, dict.fromkeys(SIZES, 10e9), 5e9, 1, dots={"int8": 400e9, "bfloat16": 200e9})
NONZEROS = 3000


def layer(algorithm: str, **types: Any) -> Layer:
    return describe_layer(replace(SQUARE, **types), algorithm, NONZEROS)


def test_bytes_take_a_quarter_of_the_room_and_their_indices_none_the_less() -> None:
    wide, narrow = (
        bounds(layer("csr_direct", **types), ROOF) for types in ({}, {**BYTES, "output_type": "uint8"})
    )
    assert wide["weights"] == pytest.approx(NONZEROS * (4 + 4) / 40e9)
    assert narrow["weights"] == pytest.approx(NONZEROS * (1 + 4) / 40e9)
    assert narrow["images"] == pytest.approx(wide["images"] / 4)
    assert narrow["FMAs"] == pytest.approx(wide["FMAs"] / 4)
    # As many vectors of inputs, but narrow ones do not lie across two lines.
    assert narrow["loads"] == pytest.approx(wide["loads"] / 2)


def test_multiply_adds_have_the_rate_of_their_type() -> None:
    wide, narrow = (
        bounds(layer("spatial_pack", **types), ROOF)
        for types in ({}, {"input_type": BFLOAT16, "weight_type": BFLOAT16})
    )
    assert narrow["FMAs"] == pytest.approx(wide["FMAs"] / 2)
    assert narrow["weights"] == pytest.approx(wide["weights"] / 2)


def test_blocks_share_indices_and_loads() -> None:
    rows, blocks = (bounds(layer(name, **BYTES), ROOF) for name in ("csr_direct", "bsr_direct"))
    assert blocks["loads"] == pytest.approx(rows["loads"] / 4)
    assert blocks["weights"] == pytest.approx(rows["weights"] * (1 + 4 / 4) / (1 + 4))
    assert blocks["FMAs"] == rows["FMAs"]


def test_dense_code_multiplies_by_zeros() -> None:
    dense, sparse = (bounds(layer(name), ROOF) for name in ("spatial_pack", "csr_direct"))
    weights = SQUARE.k * SQUARE.c * SQUARE.r * SQUARE.s
    assert dense["FMAs"] == pytest.approx(sparse["FMAs"] * weights / NONZEROS)
    assert dense["weights"] == pytest.approx(weights * 4 / 40e9) and dense["loads"] == 0


def test_without_dot_products_bytes_are_added_at_the_rate_of_others() -> None:
    without = replace(ROOF, dots={})
    bytes_, floats = (bounds(layer("csr_direct", **types), without) for types in (BYTES, {}))
    assert bytes_["FMAs"] == floats["FMAs"]
