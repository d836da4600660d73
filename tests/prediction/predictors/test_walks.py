"""Numpy's walk over the trees of several boosters adds up what XGBoost does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.prediction.predictors.fitted.walks import Walks
from dlas.stack import Workspace
from dlas.testing.predictors import made_up

COLUMNS = 5
DEPTHS = {40: 3, 7: 5, 1: 4}
"""Of boosters, by their number of trees."""


def made(rounds: int, folder: Path, depth: int) -> Booster:
    """Return trees that were fitted to noise on a slope, and read from a file."""
    rng = np.random.default_rng(rounds)
    features = rng.lognormal(3, 3, (400, COLUMNS))
    target = 3.0 + np.log(features[:, 0]) + rng.normal(0, 0.1, 400)
    settings: dict[str, Any] = {"max_depth": depth, "learning_rate": 0.1}
    path = folder / f"{rounds}.json"
    Booster.fitted(features, target, rounds, settings).save(path)
    return Booster.read(path, COLUMNS)


@pytest.fixture
def boosters(tmp_path: Path) -> list[Booster]:
    return [made(rounds, tmp_path, depth) for rounds, depth in DEPTHS.items()]


def walks_of(boosters: list[Booster]) -> Walks:
    return Walks.of([booster.nodes for booster in boosters if booster.nodes is not None])


def test_rows_of_all_boosters_have_what_xgboost_predicts(boosters: list[Booster]) -> None:
    walks = walks_of(boosters)
    rng = np.random.default_rng(0)
    features = rng.lognormal(3, 3, (200, COLUMNS))
    places = rng.integers(0, len(boosters) + 1, len(features))
    found = walks.sums(features, places)
    for place, booster in enumerate(boosters):
        own = places == place
        assert np.allclose(found[own], booster.predict(features[own]), rtol=1e-6, atol=0)
        assert np.array_equal(found[own], booster.predict(features[own])), "to the last bit"
    assert not found[places == len(boosters)].any(), "of no booster"


def test_a_value_at_a_threshold_goes_where_xgboost_sends_it(boosters: list[Booster]) -> None:
    walks = walks_of(boosters)
    inner = walks.threshold[np.isfinite(walks.threshold)][:100].astype(np.float64)
    features = np.repeat(inner[:, None], COLUMNS, axis=1)
    found = walks.sums(features, np.zeros(len(features), dtype=np.intp))
    assert np.array_equal(found, boosters[0].predict(features))


def test_few_rows_are_walked_and_many_are_left_to_xgboost(boosters: list[Booster]) -> None:
    walks = walks_of(boosters)
    assert walks.cheaper(1, 1) and not walks.cheaper(100_000, 3)
    assert walks.depth == max(DEPTHS.values()) and walks.roots.shape == (max(DEPTHS), len(DEPTHS) + 1)


def test_a_network_is_predicted_alike_either_way(tmp_path: Path) -> None:
    part = BoostedKernels(rounds=30)
    samples = made_up(part, "latency_s")
    part.fit(samples, Workspace(0, tmp_path, lambda line: None)).save(tmp_path)
    walked, called = KernelSum.read(tmp_path), KernelSum.read(tmp_path)
    vars(called)["_walks"] = None
    assert walked._walks is not None
    few = samples.take(np.arange(3))
    assert np.array_equal(walked.predict(few), called.predict(few))
    for one, other in zip(walked.told(few), (walked.predict(few), walked.unknown(few)), strict=True):
        assert np.array_equal(one, other)


def test_trees_whose_children_are_apart_are_left_to_xgboost(tmp_path: Path) -> None:
    booster = made(1, tmp_path, 1)
    assert booster.nodes is not None
    content = json.loads((tmp_path / "1.json").read_text())
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    assert len(tree["left_children"]) == 3
    for values in tree.values():
        if isinstance(values, list) and len(values) == 3:
            values[1], values[2] = values[2], values[1]
    tree["left_children"][0], tree["right_children"][0] = 2, 1
    (tmp_path / "1.json").write_text(json.dumps(content))
    apart = Booster.read(tmp_path / "1.json", COLUMNS)
    features = np.random.default_rng(1).lognormal(3, 3, (50, COLUMNS))
    assert apart.nodes is None
    assert np.array_equal(apart.predict(features), booster.predict(features))
