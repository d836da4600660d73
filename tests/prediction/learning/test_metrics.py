"""Scores, intervals and the noise floor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dlas.prediction.learning.intervals import fewest_groups, half_width
from dlas.prediction.learning.metrics import score
from dlas.prediction.learning.noise import noise_floor


def test_scores_of_three_rows() -> None:
    found = score(np.array([1.08, 2.0, 3.6]), np.array([1.0, 2.0, 4.0]))
    assert found.rows == 3
    assert found.mape == pytest.approx(0.18 / 3)
    assert found.within == pytest.approx((1 / 3, 1.0, 1.0, 1.0))
    assert found.mae == pytest.approx(0.48 / 3)
    assert found.rmse_of_mean == pytest.approx(found.rmse / (7 / 3))
    assert (found.spearman, found.kendall) == (1.0, 1.0)
    assert (found.coverage, found.width) == (None, None)


def test_equal_predictions_have_no_rank_correlation() -> None:
    found = score(np.array([2.0, 2.0]), np.array([1.0, 3.0]))
    assert (found.spearman, found.kendall) == (None, None)


def test_coverage_and_width_of_intervals() -> None:
    found = score(np.array([1.0, 2.0]), np.array([1.2, 3.0]), np.array([0.5, 1.0]), np.array([2.0, 2.5]))
    assert found.coverage == 0.5
    assert found.width == pytest.approx((3.0 + 1.5) / 2)


def test_the_error_of_the_coverage_is_that_of_draws_of_groups() -> None:
    # Ten groups of four rows, half of the groups covered: the share of ten draws has this error.
    groups = [str(number) for number in range(10) for _ in range(4)]
    ones, high = np.ones(40), np.repeat([2.0, 0.9], 20)
    found = score(ones, ones, np.full(40, 0.5), high, groups)
    assert found.coverage == 0.5
    assert found.coverage_error == pytest.approx(np.sqrt(0.25 / 10), rel=0.1)
    assert score(ones, ones, ones, ones, ["one"] * 40).coverage_error is None


def test_eight_groups_give_no_interval_and_nine_do() -> None:
    assert fewest_groups() == 9
    rng = np.random.default_rng(0)
    for count in (8, 9):
        groups = [str(number) for number in range(count) for _ in range(5)]
        measured = rng.lognormal(0, 0.1, len(groups))
        found = half_width(np.ones(len(groups)), measured, groups)
        assert (found is None) == (count == 8)


def test_a_group_of_many_rows_weighs_as_much_as_one_of_few() -> None:
    errors = {"loud": 0.5, **{f"calm {number}": 0.01 for number in range(18)}}
    small = [(name, error) for name, error in errors.items()]
    large = small + [("loud", 0.5)] * 1000
    for rows in (small, large):
        groups, logs = zip(*rows, strict=True)
        assert half_width(np.ones(len(rows)), np.exp(np.array(logs)), groups) == pytest.approx(0.01)


def test_intervals_cover_groups_that_were_not_seen() -> None:
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(200):
        biases = rng.normal(0, 0.1, 31)
        errors = biases[:, None] + rng.normal(0, 0.02, (31, 8))
        groups = [str(group) for group in range(30) for _ in range(8)]
        width = half_width(np.ones(240), np.exp(errors[:30].ravel()), groups)
        assert width is not None
        covered.append(np.mean(np.abs(errors[30]) <= width))
    assert 0.87 <= np.mean(covered) <= 0.96


def test_the_noise_floor_is_the_error_of_one_measurement() -> None:
    frame = pd.DataFrame(
        {
            "id": ["a", "a", "b", "b", "c"],
            "machine_id": "m",
            "status": "ok",
            "latency_s": [1.0, 1.1, 2.0, 2.0, 7.0],
        }
    )
    assert noise_floor(frame, "latency_s") == pytest.approx((0.1 / 1.05 + 0) / 2 / np.sqrt(2))
    assert noise_floor(frame.drop(index=[1, 3]), "latency_s") is None


def test_measurements_of_other_machines_are_no_repeats() -> None:
    frame = pd.DataFrame({"id": "a", "machine_id": ["m", "n"], "status": "ok", "latency_s": [1.0, 2.0]})
    assert noise_floor(frame, "latency_s") is None
