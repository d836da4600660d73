"""What a committee of predictors disagrees on is measured next, for the seconds that it costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dlas.prediction.adaptive.device.committee import PARTS, Committee, choose, seconds_to_measure
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.extra_trees import ExtraTrees
from dlas.stack import Fitted, Samples
from dlas.stack.types import Floats
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_row, training_rows

TARGET = "latency_s"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Points:
    folder = write(tmp_path_factory.mktemp("known"), list(training_rows()))
    return read_points([folder], TARGET)


@pytest.fixture(scope="module")
def committee(known: Points) -> Committee:
    return Committee.of(ExtraTrees(trees=10), [Additive()], known, TARGET)


def points(folder: Path, *batches: int) -> Points:
    """Return points of a network that was fitted, at these batch sizes."""
    return read_points([write(folder, [training_row("wide", 0.4, batch) for batch in batches])], TARGET)


def test_members_are_fitted_without_a_part_of_the_networks_each(committee: Committee, known: Points) -> None:
    assert [type(predictor) for predictor, _ in committee.members] == [ExtraTrees] * PARTS + [Additive]
    assert committee.errors.shape == (len(known),) and 0 < committee.errors.mean() < 1


def test_the_error_is_that_of_networks_held_out(known: Points) -> None:
    trees = Committee.of(ExtraTrees(trees=10), [], known, TARGET)
    costs = Committee.of(Additive(), [], known, TARGET)
    assert costs.errors.mean() < 0.05 < trees.errors.mean(), "trees do not extrapolate"


def test_it_disagrees_most_on_what_is_unlike_all_that_it_was_fitted_to(
    committee: Committee, tmp_path: Path
) -> None:
    usual, strange = committee.disagreement(points(tmp_path, 8, 4096))
    assert strange > 3 * usual


@dataclass(frozen=True)
class Guess(Fitted):
    """Predicts a second, a share of it for kernels that it does not know."""

    share: float

    def predict(self, samples: Samples) -> Floats:
        return np.ones(len(samples))

    def unknown(self, samples: Samples) -> Floats:
        return np.full(len(samples), self.share)

    def save(self, folder: Path) -> None:
        raise AssertionError("nobody saves a committee")


def test_kernels_that_no_member_knows_count_although_all_guess_alike(known: Points) -> None:
    sure, unsure, none = (
        Committee(((Additive(), Guess(share)),) * 2, TARGET, np.zeros(1)).disagreement(known).max()
        for share in (0.01, 0.5, 0.0)
    )
    assert unsure > 10 * sure > 0 and none == 0


def test_seconds_to_measure_follow_from_what_others_took(known: Points, tmp_path: Path) -> None:
    latency = known.frame[TARGET].to_numpy(dtype=float)
    candidates = points(tmp_path, 2, 8, 64)
    found = seconds_to_measure(known, 2 + 100 * latency, candidates)
    measured = candidates.frame[TARGET].to_numpy(dtype=float)
    assert found == pytest.approx(2 + 100 * measured, rel=0.1)


def test_what_is_chosen_is_disagreed_on_for_the_seconds_that_it_costs() -> None:
    disagreement = np.array([0.1, 0.4, 0.3, 0.01])
    assert choose(disagreement, np.array([1.0, 1.0, 1.0, 1.0]), 2).tolist() == [1, 2]
    assert choose(disagreement, np.array([1.0, 9.0, 1.0, 1.0]), 2).tolist() == [2, 0]
    assert choose(disagreement, np.ones(4), 9).tolist() == [1, 2, 0, 3]


def test_one_point_alone_can_be_a_candidate(committee: Committee, known: Points) -> None:
    one = known.take(np.array([0]))
    assert committee.disagreement(one).shape == (1,)
