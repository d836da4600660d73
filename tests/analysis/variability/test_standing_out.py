"""Which boards stand out, in many fabricated sets: none among equals, and the one that is slower."""

from __future__ import annotations

import numpy as np
import pytest

from dlas.analysis.variability.observed import Observed
from dlas.analysis.variability.variability import HIGHER, against_others, holm, variability
from tests.fixtures.board_rows import fabricated, observed_of

SLOW = 5
ENOUGH = 299
"""Permutations that can tell the p-value that one board of thirteen takes."""
QUICK = 4
MANY = pytest.param(1000, marks=pytest.mark.slow)


def calls(observed: Observed, permutations: int) -> bool:
    """Return whether any board is said to stand out."""
    return bool((against_others(observed, permutations)[1] <= 0.05).any())


@pytest.mark.parametrize(("sets", "most"), [(QUICK, 2), pytest.param(1000, 50, marks=pytest.mark.slow)])
def test_no_board_stands_out_among_equals(sets: int, most: int) -> None:
    """Of few sets more than a twentieth may be called: three of four are as rare as one in two thousand."""
    assert sum(calls(fabricated({}, seed), ENOUGH) for seed in range(sets)) <= most


@pytest.mark.parametrize("sets", [QUICK, MANY])
def test_the_board_that_is_slower_by_three_percent_is_found(sets: int) -> None:
    found = alone = 0
    for seed in range(sets):
        standing = np.flatnonzero(against_others(fabricated({SLOW: 0.03}, seed), ENOUGH)[1] <= 0.05).tolist()
        found, alone = found + (SLOW in standing), alone + (standing == [SLOW])
    assert found >= 0.95 * sets
    assert alone >= 0.90 * sets, "others are called as rarely as among equals"


def test_a_board_that_stands_out_is_named_with_its_difference() -> None:
    found = variability(fabricated({SLOW: 0.03}, 1), ENOUGH)
    (board,) = found.outstanding
    middle, low, high = board.rd
    assert board.board == "b05" and board.verdict == HIGHER
    assert low <= middle <= high and low > 0.01 and high < 0.05
    assert found.p <= 0.05


def test_two_that_stand_out_do_not_hide_each_other() -> None:
    found = variability(fabricated({2: 0.05, 7: -0.05}, 3), ENOUGH)
    assert sorted(each.board for each in found.outstanding) == ["b02", "b07"]


def test_of_two_boards_both_differ_or_none() -> None:
    # Their differences from the median of both are mirror images, which is no evidence of its own.
    called = sum(calls(fabricated({}, seed, boards=2), 99) for seed in range(40))
    assert called <= 6
    p = against_others(fabricated({0: 0.03}, 0, boards=2), 199)[1]
    assert p[0] == p[1] <= 0.05


def test_points_that_differ_in_noise_call_no_board() -> None:
    def uneven(seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        noise = np.repeat([[0.001], [0.1]], 10, axis=0)
        return 1 + noise * np.clip(random.standard_normal((20, 5)), -3, 3)

    called = sum(calls(observed_of(uneven(seed)), 199) for seed in range(30))
    assert called <= 5


def test_a_single_row_a_board_tells_nothing() -> None:
    values = np.array([[1.0, 1.0, 1.0, 2.0]])
    found = variability(observed_of(values), 99)
    assert not found.outstanding and found.p == 1
    assert found.needed is not None and np.isnan(found.needed.within) and np.isnan(found.needed.paired)


def test_holms_method_multiplies_the_smallest_by_all_and_the_largest_by_one() -> None:
    assert holm([0.03, 0.01, 0.5]) == pytest.approx([0.06, 0.03, 0.5])
    assert holm([]).size == 0
