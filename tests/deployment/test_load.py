"""The simulated load: arrivals follow from the seed, and routing keeps up where one path does not."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.load import CHEAPEST, RATES, STATIC, Outcome, always, arrivals, serve, servers
from dlas.deployment.routing import POLICIES, Route

BATCH, STATIC_S = 8, 8e-3
SECONDS = {"00": STATIC_S, "01": STATIC_S / 2, "11": STATIC_S / 4}
ACCURACY = {"00": 0.99, "01": 0.97, "11": 0.90}
ROUTES = [
    Route(path, ACCURACY[path], SECONDS[path], 0.98 * SECONDS[path], 1.02 * SECONDS[path])
    for path in ("11", "01", "00")
]
CAPACITY = BATCH / STATIC_S
DEADLINE = 4 * STATIC_S


def outcomes(trace: str) -> dict[str, Outcome]:
    times = arrivals(RATES[trace], CAPACITY, 10, seed=0)
    return {
        name: serve(times, ROUTES, policy, lambda path, count: SECONDS[path], BATCH, DEADLINE)
        for name, policy in servers(ROUTES).items()
    }


def test_arrivals_follow_from_the_seed_and_the_rates() -> None:
    times = arrivals([1, 3], 100, 20, seed=1)
    assert np.array_equal(times, arrivals([1, 3], 100, 20, seed=1))
    assert not np.array_equal(times, arrivals([1, 3], 100, 20, seed=2))
    assert (np.diff(times) >= 0).all() and times[0] >= 0 and times[-1] <= 20
    assert (times < 10).sum() == pytest.approx(1000, rel=0.15)
    assert (times >= 10).sum() == pytest.approx(3000, rel=0.15)


def test_in_bursts_of_twice_what_the_static_network_serves_routing_keeps_up() -> None:
    found = outcomes("bursts")
    assert found[STATIC].late > 0.3 and found[STATIC].accuracy == pytest.approx(0.99)
    assert found[CHEAPEST].late == 0 and found[CHEAPEST].accuracy == pytest.approx(0.90)
    assert found["load"].late < 0.01
    assert found[CHEAPEST].accuracy < found["load"].accuracy < found[STATIC].accuracy
    assert found["load"].paths > 1


def test_with_little_to_do_routing_takes_the_static_networks_path() -> None:
    times = np.arange(0, 1, 10 * STATIC_S)
    policy = POLICIES["load"]
    outcome = serve(times, ROUTES, policy, lambda path, count: SECONDS[path], BATCH, DEADLINE)
    assert outcome == serve(times, ROUTES, always("00"), lambda path, count: SECONDS[path], BATCH, DEADLINE)
    assert (outcome.late, outcome.paths) == (0, 1) and outcome.accuracy == pytest.approx(0.99)
