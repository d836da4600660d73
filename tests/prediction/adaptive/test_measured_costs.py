"""What measuring tells a search, beside what predictors tell."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from dlas.errors import InputError
from dlas.prediction.adaptive.evolution.estimators import Measurement, costs_of
from tests.fixtures.rows import failing, row

NOTHING: Any = None
"""A space and a session, which measuring needs none of."""


def test_one_measurement_tells_time_and_energy() -> None:
    bounds = {"energy_j": 1.0, "latency_s": 0.02}
    costs = costs_of(["measure"], NOTHING, bounds, NOTHING)
    assert list(costs) == list(bounds)
    energy, latency = costs.values()
    assert isinstance(energy, Measurement) and isinstance(latency, Measurement)
    rows = [row(10, energy_j=0.2), row(12, batch=2), failing(batch=3)]
    energy.rows.update({each.id: each for each in rows})
    points: list[Any] = [SimpleNamespace(id=each.id) for each in rows]
    value, high = energy(points)
    assert value.tolist() == high.tolist() == [0.2, math.inf, math.inf], "what has no energy keeps no bound"
    value, high = latency(points)
    assert value[:2] == pytest.approx([0.01, 0.012], rel=0.05) and (high[:2] > value[:2]).all()


def test_what_measuring_does_not_tell_needs_a_predictor() -> None:
    with pytest.raises(InputError, match="no `estimator=` tells it; these are told: latency_s"):
        costs_of(["measure"], NOTHING, {"latency_s": 1.0, "peak_memory_bytes": 1.0}, NOTHING)
    with pytest.raises(InputError, match="tells latency_s; give `within=latency_s"):
        costs_of(["measure"], NOTHING, {"peak_memory_bytes": 1.0}, NOTHING)
    with pytest.raises(InputError, match="another one tells energy_j, too"):
        costs_of(["measure", "measure"], NOTHING, {"energy_j": 1.0}, NOTHING)
