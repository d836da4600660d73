"""What is computed together in a row, and older words for it."""

from __future__ import annotations

import json

import pytest

from dlas.stack import Layer
from dlas.sweep.rows.operators import UNKNOWN, kind_of, kinds
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row

LAYERS: list[Layer] = [
    {"name": "first", "operator": "Conv", "fused": ["Relu"], "latency_s": 2e-3},
    {"name": "pool", "operator": "MaxPool", "latency_s": 5e-3},
    {"name": "second", "operator": "Conv", "fused": ["Relu"], "latency_s": 4e-3},
    {"name": "third", "operator": "Conv", "fused": [], "latency_s": 1e-3},
    {"name": "untimed", "operator": "Gemm", "latency_s": None},
    {"name": "kernel7", "latency_s": 1e-3},
]


def test_kinds_are_what_is_computed_together_the_slowest_first() -> None:
    found = kinds(row(20, layers=LAYERS))
    names = [(kind.name, kind.count) for kind in found]
    assert names == [("Conv + Relu", 2), ("MaxPool", 1), ("Conv", 1), (UNKNOWN, 1)]
    assert [kind.latency_s for kind in found] == pytest.approx([6e-3, 5e-3, 1e-3, 1e-3])
    assert [kind.backward_s for kind in found] == [None] * 4


def test_backward_times_count_too() -> None:
    layers: list[Layer] = [{**LAYERS[0], "backward_s": 5e-3}, LAYERS[1], {**LAYERS[2], "backward_s": 3e-3}]
    first, second = kinds(row(20, layers=layers))
    assert first.name == "Conv + Relu" and first.backward_s == pytest.approx(8e-3)
    assert (second.name, second.backward_s) == ("MaxPool", None)


def test_rows_written_with_a_tail_are_read_with_what_is_fused() -> None:
    written = json.loads(row(20).line())
    written["layers"] = [
        {"name": "conv", "algorithm": "direct", "tail": ["add", "silu", "something"], "latency_s": 1e-3},
        {"name": "max_pool2d", "latency_s": 1e-3},
    ]
    conv, pool = Row.parse(json.dumps(written)).layers
    assert (conv["operator"], conv["fused"]) == ("Conv", ["Add", "Swish", "something"])
    assert "tail" not in conv and (kind_of(conv), kind_of(pool)) == (
        "Conv + Add + Swish + something",
        UNKNOWN,
    )
