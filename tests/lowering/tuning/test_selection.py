from __future__ import annotations

import pytest

from dlas.lowering.tuning.records import Header, Records, Round, Selection, Trial
from dlas.lowering.tuning.selection import (
    METHOD,
    Budget,
    count_trials,
    curve,
    failures,
    finalists,
    first_trials,
    recorded_selection,
    winner,
)


def timed(*milliseconds: float | None) -> Records:
    records = Records(Header({}, {}))
    records.add(Round([{"decisions": {"n": n}} for n in range(len(milliseconds))]))
    for number, value in enumerate(milliseconds):
        if value is None:
            records.add(Trial(number, 0.5, failed="wrong", words="off by 1"))
        else:
            records.add(Trial(number, 0.5, run_s=[value * 1e-3], trace=[[], []]))
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
    assert count_trials(timed(*milliseconds), Budget(trials, early_stop)) == count


def test_a_space_that_is_exhausted_ends_the_search() -> None:
    records = timed(3, 2)
    records.add(Round([]))
    assert count_trials(records, Budget(9)) == 2


def test_the_curve_has_a_point_wherever_the_best_got_better() -> None:
    trials = first_trials(timed(3, None, 4, 2, 2, 1), 6)
    assert curve(trials) == [(1, 0.5, 3e-3), (4, 2.0, 2e-3), (6, 3.0, 1e-3)]


def test_the_best_few_and_the_best_guess_are_measured_again() -> None:
    assert finalists(first_trials(timed(9, 1, 8, 2, 7, 3, 6, 4, 5), 9)) == [0, 1, 3, 5, 7, 8]
    assert finalists(first_trials(timed(None, None, 2), 3)) == [2]
    assert finalists(first_trials(timed(None), 1)) == []


def test_the_earlier_of_two_that_cannot_be_told_apart_wins() -> None:
    assert winner({3: [2.0] * 5, 7: [1.0] * 5}) == 7
    assert winner({3: [1.005] * 5, 7: [1.0] * 5}) == 3
    assert winner({3: [1.05] * 5, 7: [1.0] * 5}) == 7
    assert winner({3: [1.05] * 5, 7: [0.8, 0.9, 1.0, 1.1, 1.2]}) == 3
    assert winner({5: [1.0]}) == 5


def test_a_selection_belongs_to_the_number_of_trials_and_the_method() -> None:
    records = timed(3, 2, 1)
    records.add(Selection(2, METHOD, 1, {"1": [2e-3]}, 0.1))
    records.add(Selection(3, {**METHOD, "samples": 1}, 2, {"2": [1e-3]}, 0.1))
    made = recorded_selection(records, 2)
    assert made is not None and made.number == 1
    assert recorded_selection(records, 3) is None
    assert failures(first_trials(timed(None, None, 1), 3)) == "2 x wrong: off by 1"
