from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.tuning import choosing
from dlas.tuning.choosing import METHOD, Budget, counting, curve, finalists, winner
from dlas.tuning.records import Choice, Header, Records, Round, Trial
from dlas.tuning.search import OwnSpace

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
    while counting(records, Budget(trials)) is None:
        missing = [n for n in range(min(trials, len(records.candidates))) if n not in records.trials]
        for number in missing:
            records.add(Trial(number, 0.1, run_s=[time(records.candidates[number]["decisions"])]))
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
    found = [min(trial.median_s for trial in searched(24, seed).valid) for seed in range(60)]
    assert sum(seconds == min(map(speed, GRID)) for seconds in found) / 60 > 0.6  # 24 of 60 by chance


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


# ---------------------------------------------------------------- how many count, and which is chosen


def timed(*milliseconds: float | None) -> Records:
    records = Records(Header({}, {}))
    records.add(Round([{"decisions": {"n": n}} for n in range(len(milliseconds))]))
    for number, each in enumerate(milliseconds):
        if each is None:
            records.add(Trial(number, 0.5, failed="wrong", words="off by 1"))
        else:
            records.add(Trial(number, 0.5, run_s=[each * 1e-3]))
    return records


@pytest.mark.parametrize(
    ("milliseconds", "trials", "early_stop", "count"),
    [
        ([3, 2, 1], 3, 0, 3),
        ([3, 2, 1], 2, 0, 2),
        ([3, 2, 1], 4, 0, None),
        ([3, 4, 4, 4, 1], 5, 3, 4),
        ([3, 4, 2, 4, 1], 5, 3, 5),
        ([3, 3, 3, 3], 4, 2, 3),
        ([None, None, None, 1], 4, 3, 3),
        ([3, 4], 9, 2, None),
    ],
)
def test_trials_count_up_to_the_budget_or_an_early_stop(
    milliseconds: list[float | None], trials: int, early_stop: int, count: int | None
) -> None:
    assert counting(timed(*milliseconds), Budget(trials, early_stop)) == count


def test_a_space_that_is_exhausted_ends_the_search() -> None:
    records = timed(3, 2)
    records.add(Round([]))
    assert counting(records, Budget(9)) == 2


def test_the_curve_has_a_point_wherever_the_best_got_better() -> None:
    trials = choosing.first(timed(3, None, 4, 2, 2, 1), 6)
    assert curve(trials) == [(1, 0.5, 3e-3), (4, 2.0, 2e-3), (6, 3.0, 1e-3)]


def test_the_best_few_and_the_best_guess_are_measured_again() -> None:
    assert finalists(choosing.first(timed(9, 1, 8, 2, 7, 3, 6, 4, 5), 9)) == [0, 1, 3, 5, 7, 8]
    assert finalists(choosing.first(timed(None, None, 2), 3)) == [2]
    assert finalists(choosing.first(timed(None), 1)) == []


def test_the_earlier_of_two_that_cannot_be_told_apart_wins() -> None:
    assert winner({3: [2.0] * 5, 7: [1.0] * 5}) == 7
    assert winner({3: [1.005] * 5, 7: [1.0] * 5}) == 3
    assert winner({3: [1.05] * 5, 7: [1.0] * 5}) == 7
    assert winner({3: [1.05] * 5, 7: [0.8, 0.9, 1.0, 1.1, 1.2]}) == 3
    assert winner({5: [1.0]}) == 5


def test_a_choice_belongs_to_the_number_of_trials_and_the_method() -> None:
    records = timed(3, 2, 1)
    records.add(Choice(2, METHOD, 1, {"1": [2e-3]}, 0.1))
    records.add(Choice(3, {**METHOD, "samples": 1}, 2, {"2": [1e-3]}, 0.1))
    made = choosing.recorded(records, 2)
    assert made is not None and made.number == 1
    assert choosing.recorded(records, 3) is None
    assert choosing.failures(choosing.first(timed(None, None, 1), 3)) == "2 x wrong: off by 1"
