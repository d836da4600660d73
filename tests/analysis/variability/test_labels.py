"""The statistics are those of scipy, and labels are exchanged within points alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from dlas.analysis.variability.labels import LabelledValues, label_tests


def values_of(table: np.ndarray) -> LabelledValues:
    points, boards = table.shape
    board, point = np.tile(np.arange(boards), points), np.repeat(np.arange(points), boards)
    return LabelledValues(table.ravel(), np.arange(table.size), board, point)


@pytest.mark.parametrize("decimals", [8, 1], ids=["different", "tied"])
def test_distances_are_scipys(decimals: int) -> None:
    table = np.random.default_rng(1).normal(size=(12, 5)).round(decimals)
    labelled = values_of(table)
    (distances,), _ = labelled.statistics(labelled.board[None])
    for board, distance in enumerate(distances):
        others = np.delete(table, board, axis=1).ravel()
        assert distance == pytest.approx(stats.ks_2samp(table[:, board], others).statistic)


@pytest.mark.parametrize("decimals", [8, 1], ids=["different", "tied"])
def test_the_anderson_darling_statistic_is_scipys(decimals: int) -> None:
    random = np.random.default_rng(2)
    ours, theirs = [], []
    for _ in range(3):
        table = random.normal(size=(12, 4)).round(decimals)
        labelled = values_of(table)
        ours.append(labelled.statistics(labelled.board[None])[1][0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs.append(stats.anderson_ksamp(list(table.T), midrank=False).statistic)
    # Scipy's is this less its mean, in standard deviations: both follow from the sizes alone.
    sizes = np.diff(ours) / np.diff(theirs)
    assert sizes[0] == pytest.approx(sizes[1])
    assert ours[0] - theirs[0] * sizes[0] == pytest.approx(3)


def test_labels_stay_within_their_points_and_rows() -> None:
    labelled = LabelledValues(
        np.arange(12.0), np.repeat(np.arange(6), 2), np.array([0, 1, 1, 2, 3, 3]), np.repeat([0, 1], 3)
    )
    for labels in labelled.permuted(50):
        assert (np.sort(labels[:, :3], axis=1) == [0, 1, 1]).all()
        assert (np.sort(labels[:, 3:], axis=1) == [2, 3, 3]).all()
    assert sum(len(labels) for labels in labelled.permuted(50)) == 50


def test_p_values_are_never_zero_and_the_same_each_time() -> None:
    table = np.random.default_rng(3).normal(size=(20, 3))
    table[:, 0] += 10
    first, second = (label_tests(values_of(table), 99) for _ in range(2))
    assert first.p_of_boards[0] == first.p == 0.01
    assert first.p_of_boards.tolist() == second.p_of_boards.tolist()
