"""Rows of older schemas are read in the forms of this version."""

from __future__ import annotations

import json

from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row


def parsed(**given: object) -> Row:
    """Return the row of a line in which some fields are replaced."""
    return Row.parse(json.dumps({**json.loads(row().line()), **given}))


def test_what_is_null_is_empty() -> None:
    found = parsed(reached=None, device=None, environment=None, coverage=None, layers=None, latency_s=None)
    assert (found.reached, found.device, found.environment) == ({}, {}, {})
    assert (found.layers, found.latency_s, found.coverage) == ([], [], None)


def test_nothing_in_the_place_of_a_layer_or_a_step_of_a_curve_is_left_out() -> None:
    layer, step = {"name": "conv", "latency_s": 1e-3}, {"level": 0.5, "accuracy": 0.9}
    found = parsed(layers=[layer, None], reached={"curve": [step, None], "layers": None, "ratio": 0.5})
    assert found.layers == [layer]
    assert found.reached == {"curve": [step], "ratio": 0.5}


def test_a_part_may_be_its_name_alone() -> None:
    assert parsed(model="vgg").model == {"name": "vgg"}


def test_what_is_there_stays_as_it_is() -> None:
    given = row(layers=[{"name": "conv", "operator": "Conv", "latency_s": None}], other_round={"reason": "x"})
    assert Row.parse(given.line()) == given


def test_an_ok_row_with_the_flag_of_before_is_unstable() -> None:
    found = parsed(schema=3, unstable=True, unstable_reason="the medians differ", accuracy=0.9)
    assert (found.status, found.reason, found.accuracy) == ("unstable", "the medians differ", 0.9)
    assert not found.timed and not found.settled
    assert parsed(schema=3, unstable=False, unstable_reason=None).status == "ok"
    failed = parsed(status="failed", reason="no disk", unstable=True, unstable_reason="the medians differ")
    assert (failed.status, failed.reason) == ("failed", "no disk")
