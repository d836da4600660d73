"""Rows of older schemas, and damaged ones, are read in the forms of this version."""

from __future__ import annotations

import json

import pytest

from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row


def parsed(**given: object) -> Row:
    """Return the row of a line in which some fields are replaced."""
    return Row.parse(json.dumps({**json.loads(row().line()), **given}))


@pytest.mark.parametrize("value", [None, 3, "x", []])
def test_what_is_no_mapping_is_left_out(value: object) -> None:
    found = parsed(reached=value, device=value, environment=value, coverage=value, tuning=value)
    assert (found.reached, found.device, found.environment) == ({}, {}, {})
    assert found.coverage is found.tuning is None


@pytest.mark.parametrize("value", [None, 3, "x", {}])
def test_what_is_no_list_is_left_out(value: object) -> None:
    found = parsed(layers=value, edges=value, latency_s=value)
    assert (found.layers, found.edges, found.latency_s) == ([], [], [])


def test_layers_and_steps_of_a_curve_are_mappings() -> None:
    layer, step = {"name": "conv", "latency_s": 1e-3}, {"level": 0.5, "accuracy": 0.9}
    found = parsed(layers=[layer, None, 3], reached={"curve": [step, "x"], "layers": 3, "ratio": 0.5})
    assert found.layers == [layer]
    assert found.reached == {"curve": [step], "ratio": 0.5}
    assert parsed(reached={"curve": 1}).reached == {"curve": []}


def test_parts_are_mappings() -> None:
    found = parsed(model="vgg", compression=None)
    assert (found.model, found.compression) == ({"name": "vgg"}, {"name": "None"})


def test_what_is_there_stays_as_it_is() -> None:
    given = row(layers=[{"name": "conv", "operator": "Conv", "latency_s": None}], other_round={"reason": "x"})
    assert Row.parse(given.line()) == given
