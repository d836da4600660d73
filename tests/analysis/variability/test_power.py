"""How many boards see two percent: the formula against simulated t-tests, and what it follows from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dlas.analysis.variability.power import POWER, boards_needed, power_of
from tests.fixtures.board_rows import observed_of


def made(between: float, within: float, points: int, boards: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    logs = random.normal(0, between, boards) + random.normal(0, within, (points, boards))
    return np.exp(logs + random.normal(0, 1, (points, 1)))


def test_the_spread_is_found_again() -> None:
    needed = boards_needed(observed_of(made(0.03, 0.01, 40, 400)))
    assert needed.between == pytest.approx(0.03, rel=0.1)
    assert needed.within == pytest.approx(0.01, rel=0.05)
    assert needed.points == 40


def test_the_number_of_boards_has_that_power_in_simulated_tests() -> None:
    between, random = 0.02, np.random.default_rng(1)
    boards = int(next(n for n in range(2, 100) if power_of(np.array([n]), 2 * between**2, 2)[0] >= POWER))
    first = random.normal(0, between, (4000, boards))
    second = random.normal(np.log(1.02), between, (4000, boards))
    seen = (stats.ttest_ind(first, second, axis=1).pvalue < 0.05).mean()
    assert POWER - 0.02 < seen < POWER + 0.03


def test_boards_that_differ_more_take_more_and_pairs_take_few() -> None:
    near, far = (boards_needed(observed_of(made(spread, 0.01, 30, 13))) for spread in (0.01, 0.1))
    assert near.groups < far.groups
    assert far.paired == near.paired <= 4


def test_too_many_are_infinitely_many() -> None:
    assert boards_needed(observed_of(made(0.8, 0.01, 10, 5))).groups == np.inf


def test_boards_that_do_not_differ_at_all_take_two() -> None:
    needed = boards_needed(observed_of(np.ones((4, 3))))
    assert (needed.between, needed.within, needed.groups, needed.paired) == (0, 0, 2, 2)
