from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.lowering.tuning.own_space import OwnSpace
from dlas.lowering.tuning.records import Header, Records, Round, Trial
from dlas.lowering.tuning.selection import Budget, count_trials

GRID: list[dict[str, int | str]] = [
    {"a": a, "b": b, "order": order} for order in ("x", "y") for a in range(6) for b in range(5)
]


def speed(point: dict[str, Any]) -> float:
    """Seconds a call: smooth, fastest at a = 4, b = 3, order y."""
    return float(1e-3 * (1 + (point["a"] - 4) ** 2 + (point["b"] - 3) ** 2 + 3 * (point["order"] == "x")))


def searched(
    trials: int, seed: int = 0, records: Records | None = None, time: Callable[..., float] = speed
) -> Records:
    """Return the records of a search of the grid, which may go on from earlier ones."""
    records = records or Records(Header({}, {}))
    space = OwnSpace(GRID, seed, per_round=8)
    while count_trials(records, Budget(trials)) is None:
        missing = [n for n in range(min(trials, len(records.candidates))) if n not in records.trials]
        for number in missing:
            seconds = time(records.candidates[number]["decisions"])
            records.add(Trial(number, 0.1, run_s=[seconds], trace=[[], []]))
        if not missing:
            records.add(Round(space.propose(records)))
    return records


def points(records: Records, count: int) -> list[Any]:
    return [candidate["decisions"] for candidate in records.candidates[:count]]


def test_the_best_guess_comes_first_and_every_point_once() -> None:
    records = searched(100)
    assert records.candidates[0]["decisions"] == GRID[0]
    assert records.exhausted
    assert len(records.trials) == len(GRID)
    assert {tuple(sorted(point.items())) for point in points(records, 60)} == {
        tuple(sorted(point.items())) for point in GRID
    }


def test_the_search_finds_the_best_more_often_than_chance() -> None:
    best = [min(trial.median_s for trial in searched(24, seed).valid) for seed in range(60)]
    assert sum(seconds == min(map(speed, GRID)) for seconds in best) / 60 > 0.6  # 24 of 60 by chance


def test_seed_and_results_decide_what_is_tried() -> None:
    assert points(searched(40), 40) == points(searched(40), 40)
    assert points(searched(40), 40) != points(searched(40, seed=1), 40)
    backwards = searched(40, time=lambda point: 1 / speed(point))
    assert points(searched(40), 8) == points(backwards, 8)
    assert points(searched(40), 40) != points(backwards, 40)


@given(st.lists(st.integers(1, 60), max_size=4).map(sorted))
@settings(max_examples=20, deadline=None)
def test_a_search_in_pieces_is_the_search_in_one(stops: list[int]) -> None:
    records = None
    for stop in [*stops, 60]:
        records = searched(stop, records=records)
    assert records is not None
    assert points(records, 60) == points(searched(60), 60)


def test_points_that_a_space_names_twice_are_tried_once() -> None:
    space = OwnSpace([*GRID[:3], *GRID[:3]], 0, 16)
    assert len(space.propose(Records(Header({}, {})))) == 3
