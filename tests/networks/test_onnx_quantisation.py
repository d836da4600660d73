"""Quantised graphs whose numbers make no sense are refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dlas.errors import InputError
from dlas.networks.onnx.files import read_model
from tests.fixtures.quantised_graphs import QuantisedGraph

SHAPE = (1, 4, 6, 6)
WEIGHT = np.ones((8, 4, 3, 3), np.int8)


def graph(scales: Any = None, axis: int = 0, activation: tuple[float, int] = (0.1, 3)) -> onnx.ModelProto:
    """Return a quantised convolution."""
    made = QuantisedGraph(SHAPE)
    scale = np.full(8, 0.1, np.float32) if scales is None else np.float32(scales)
    y = made.op("Conv", made.quantised("x", activation), made.integers(WEIGHT, scale, axis=axis))
    return made.model(made.quantised(y, (0.5, 0)))


def with_zero(array: Any) -> onnx.ModelProto:
    """Return a graph whose weights have such zero points."""
    made = QuantisedGraph(SHAPE)
    names = [made.constant(a) for a in (WEIGHT.astype(np.int32), np.float32(0.1), np.asarray(array))]
    y = made.op("Conv", made.quantised("x", (0.1, 3)), made.op("DequantizeLinear", *names))
    return made.model(made.quantised(y, (0.5, 0)))


def in_opset(version: int) -> onnx.ModelProto:
    """Return a graph in another operator set."""
    made = graph()
    made.opset_import[0].version = version
    return made


BROKEN: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "a scale of zero": (
        lambda: graph(activation=(0.0, 3)),
        "has the scale 0; scales are positive and finite",
    ),
    "a negative scale": (lambda: graph([0.1] * 7 + [-0.5]), "has the scale -0.5"),
    "no number": (lambda: graph([0.1] * 7 + [np.nan]), "has the scale nan"),
    "a zero point out of range": (lambda: with_zero(np.int32(300)), "has the zero point 300, out of range"),
    "two zero points": (lambda: with_zero(np.zeros(2, np.int32)), "has 2 zero points for 1 scales"),
    "another axis": (lambda: graph(axis=1), "has 8 scales along axis 1 of a tensor 8x4x3x3"),
    "no such axis": (lambda: graph(axis=4), "has scales along axis 4 of a tensor 8x4x3x3"),
    "a set of the future": (lambda: in_opset(999), "operator set 999; sets up to"),
    "a set without quantisation": (lambda: in_opset(9), "set 9; QuantizeLinear is from 10 on"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_numbers_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    make, message = BROKEN[name]
    path = tmp_path / "broken.onnx"
    onnx.save(make(), path)
    with pytest.raises(InputError, match=message) as caught:
        read_model(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_whole_graphs_are_read(tmp_path: Path) -> None:
    for made in (graph(), graph(0.1), with_zero(np.int32(0))):
        onnx.save(made, tmp_path / "whole.onnx")
        assert read_model(tmp_path / "whole.onnx") == made
