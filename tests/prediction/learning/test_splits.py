"""Whole groups are held out, and no network is on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from dlas.errors import InputError
from dlas.prediction.learning.splits import Criterion, Fold, check_leaks, folds

GROUPS = ["0.5", "0", "0.5", "10", "2"]


def test_each_value_is_held_out_in_turn_in_the_order_of_numbers() -> None:
    found = list(folds(Criterion.parse("compression.level"), GROUPS))
    assert [fold.name for fold in found] == [
        f"compression.level={value}" for value in ("0", "0.5", "2", "10")
    ]
    for fold in found:
        assert sorted([*fold.fitted, *fold.tried]) == list(range(5))
        held = {GROUPS[place] for place in fold.tried}
        assert len(held) == 1 and not held & {GROUPS[place] for place in fold.fitted}


def test_named_values_are_held_out_together() -> None:
    (found,) = folds(Criterion.parse("batch = 0.5, 10"), GROUPS)
    assert found.tried.tolist() == [0, 2, 3]


def test_a_share_holds_out_values_and_follows_from_the_seed() -> None:
    groups = [str(number) for number in range(10) for _ in range(3)]
    (found,) = folds(Criterion.parse("model=30%"), groups, seed=1)
    assert len({groups[place] for place in found.tried}) == 3 and len(found.tried) == 9
    (again,) = folds(Criterion.parse("model=30%"), groups, seed=1)
    assert np.array_equal(found.tried, again.tried)


def test_parts_hold_out_every_value_once() -> None:
    groups = [str(number) for number in range(25) for _ in range(2)]
    criterion = Criterion.parse("network / 10")
    assert str(criterion) == "network/10" and criterion.makes_networks
    found = list(folds(criterion, groups, seed=1))
    assert [fold.name for fold in found[:2]] == ["network: part 1 of 10", "network: part 2 of 10"]
    assert sorted(place for fold in found for place in fold.tried) == list(range(50))
    for fold in found:
        held = {groups[place] for place in fold.tried}
        assert len(held) in (2, 3) and not held & {groups[place] for place in fold.fitted}
    again = list(folds(criterion, groups, seed=1))
    assert all(np.array_equal(one.tried, other.tried) for one, other in zip(found, again, strict=True))
    assert len(list(folds(criterion, groups[:6]))) == 3, "no more parts than values"


@pytest.mark.parametrize("text", ["", "=3", "model=", "model=0%", "model=100%", "model/1", "model/0"])
def test_bad_criteria_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="`hold_out="):
        Criterion.parse(text)


def test_an_unknown_value_lists_those_that_exist() -> None:
    with pytest.raises(InputError, match=r"unknown value of batch in `hold_out=` '3'.*0, 0\.5, 10, 2"):
        list(folds(Criterion.parse("batch=3"), GROUPS))


def test_a_single_value_cannot_be_held_out() -> None:
    with pytest.raises(InputError, match="none can be held out"):
        list(folds(Criterion.parse("model"), ["a", "a"]))
    with pytest.raises(InputError, match="nothing is left"):
        list(folds(Criterion.parse("model=a,b"), ["a", "b"]))


def test_one_network_on_both_sides_is_an_error_that_names_two_rows() -> None:
    fold = Fold("compression.level=0.9", np.array([0, 1]), np.array([2]))
    check_leaks(fold, ["r0", "r1", "r2"], ["x", "y", "z"])
    with pytest.raises(InputError, match="rows r1 and r2 have the same network"):
        check_leaks(fold, ["r0", "r1", "r2"], ["x", "y", "y"])


def test_batches_share_networks() -> None:
    assert Criterion.parse("model").makes_networks and Criterion.parse("compression.level").makes_networks
    assert not Criterion.parse("batch").makes_networks
