"""Kernels are predicted one by one and add up; kinds never fitted are told; damaged trees are refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.errors import InputError
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.hyperparameters import BUDGETS, search
from dlas.prediction.predictors.fitted.kernel_index import INDEX
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.stack import Fitted, Samples, Workspace
from dlas.testing.predictors import made_up

PART = BoostedKernels(rounds=30)
WORKSPACE = Workspace(0, Path(), lambda line: None)
SAMPLES = made_up(PART, "latency_s")


@pytest.fixture(scope="module")
def fitted() -> KernelSum:
    found = PART.fit(SAMPLES, WORKSPACE)
    assert isinstance(found, KernelSum)
    return found


@pytest.fixture
def saved(fitted: KernelSum, tmp_path: Path) -> Path:
    fitted.save(tmp_path)
    return tmp_path


def errors(fitted: Fitted, samples: Samples) -> float:
    return float(np.mean(np.abs(fitted.predict(samples) / samples.target - 1)))


def test_kernels_that_add_up_are_told_for_rows_that_were_never_fitted(fitted: KernelSum) -> None:
    assert errors(fitted, SAMPLES) < 0.08
    half = np.arange(0, len(SAMPLES), 2)
    other = np.arange(1, len(SAMPLES), 2)
    found = PART.fit(SAMPLES.take(half), WORKSPACE)
    tried = SAMPLES.take(other)
    mean = float(np.mean(np.abs(SAMPLES.target[half].mean() / tried.target - 1)))
    assert errors(found, tried) < min(0.15, mean / 2)


def test_a_network_is_the_sum_of_its_kernels_with_a_factor_and_an_overhead(fitted: KernelSum) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    by_hand = np.zeros(len(SAMPLES))
    np.add.at(by_hand, kernels.points, fitted.factor * fitted.of_kernels(kernels) + fitted.overhead)
    assert np.allclose(fitted.predict(SAMPLES), by_hand, rtol=1e-12)


def test_the_factor_and_the_overhead_are_those_of_measured_kernels_whatever_few_networks_say(
    fitted: KernelSum,
) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    count, measured = np.bincount(kernels.points), np.bincount(kernels.points, kernels.seconds)
    whole = 1.5 * measured + 1e-3 * count
    whole[::4] *= 3  # disturbed
    found = fitted.scaled_to(replace(SAMPLES, target=whole))
    assert [found.factor, found.overhead] == pytest.approx([1.5, 1e-3])


def test_without_measured_kernels_they_are_those_of_predicted_ones(fitted: KernelSum) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    unknown = replace(kernels, seconds=np.full(len(kernels), np.nan))
    whole = 1.5 * fitted.predict(SAMPLES) + 1e-3 * np.bincount(kernels.points)
    found = fitted.scaled_to(replace(SAMPLES, target=whole, kernels=unknown))
    assert found.factor == pytest.approx(1.5 * fitted.factor)
    assert found.overhead == pytest.approx(1.5 * fitted.overhead + 1e-3)


def test_kernels_of_kinds_never_fitted_count_by_what_they_move(fitted: KernelSum) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    assert not fitted.unknown(SAMPLES).any()
    kinds = kernels.kinds.astype("<U12")
    kinds[kernels.points == 3] = "Attention"
    strange = replace(SAMPLES, kernels=replace(kernels, kinds=kinds))
    share = fitted.unknown(strange)
    assert share[3] == pytest.approx(1) and not np.delete(share, 3).any()
    moved = kernels.column("values")[kernels.points == 3].sum() * fitted.seconds_a_value
    count = int((kernels.points == 3).sum())
    assert fitted.predict(strange)[3] == pytest.approx(fitted.factor * moved + fitted.overhead * count)


def test_beyond_the_fitted_sizes_the_sum_extrapolates(fitted: KernelSum) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    larger = replace(SAMPLES, kernels=replace(kernels, features=100 * kernels.features))
    ratio = fitted.predict(larger) / fitted.predict(SAMPLES)
    assert np.median(ratio) > 30, "trees alone would repeat the largest time that they saw"


def on_more_threads() -> Samples:
    """Return the samples on two threads: of long kernels each does half, of short ones it gains nothing."""
    kernels = SAMPLES.kernels
    assert kernels is not None
    middle = np.median(kernels.seconds)
    seconds = kernels.seconds * np.where(kernels.seconds > middle, 0.5, 1.1)
    whole = np.bincount(kernels.points, seconds, len(SAMPLES))
    return replace(SAMPLES, target=whole.astype(np.float64), kernels=replace(kernels, seconds=seconds))


def test_a_quarter_on_more_threads_learns_from_all_on_fewer(tmp_path: Path) -> None:
    samples = on_more_threads()
    rest = np.arange(len(samples)) % 4 > 0
    known, tried = samples.take(np.flatnonzero(~rest)), samples.take(np.flatnonzero(rest))
    alone = PART.fit(known, WORKSPACE)
    beside = PART.fit(replace(known, fewer_threads=SAMPLES), WORKSPACE)
    assert errors(beside, tried) < 0.8 * errors(alone, tried)
    beside.save(tmp_path)
    assert np.allclose(PART.load(tmp_path).predict(tried), beside.predict(tried), rtol=1e-6)


def test_what_is_held_out_is_not_read_on_fewer_threads_either() -> None:
    samples = replace(on_more_threads(), fewer_threads=SAMPLES)
    lost, *others = sorted(set(samples.groups))
    kept = samples.take(np.flatnonzero(np.array(samples.groups) != lost))
    assert kept.fewer_threads is not None
    assert set(kept.groups) == set(kept.fewer_threads.groups) == set(others)


def test_a_kind_with_few_kernels_has_no_trees() -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    kinds = kernels.kinds.astype("<U12")
    kinds[:3] = "Rare"
    rare = PART.fit(replace(SAMPLES, kernels=replace(kernels, kinds=kinds)), WORKSPACE)
    assert isinstance(rare, KernelSum)
    assert rare.kinds["Rare"].booster is None and rare.kinds["conv"].booster is not None


def test_other_features_of_kernels_are_refused(fitted: KernelSum) -> None:
    kernels = SAMPLES.kernels
    assert kernels is not None
    other = replace(kernels, columns=(*kernels.columns[:-1], "other"))
    with pytest.raises(InputError, match="fit it again"):
        fitted.predict(replace(SAMPLES, kernels=other))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left_children", 10**6),
        ("right_children", 0),
        ("split_indices", 10**6),
        ("left_children", "text"),
        ("split_conditions", None),
        ("split_conditions", float("nan")),
        ("parents", 5),
        ("split_type", 1),
        ("categories_nodes", 1),
        ("id", None),
    ],
)
def test_trees_that_would_leave_their_arrays_are_refused(saved: Path, name: str, value: Any) -> None:
    path = saved / "trees_0.json"
    content = json.loads(path.read_text())
    tree = content["learner"]["gradient_booster"]["model"]["trees"][0]
    tree[name] = [] if value is None else [value, *list(tree[name])[1:]]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"trees_0\.json holds no trees"):
        KernelSum.read(saved)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"kinds": [1], "columns": [], "boosted": []}',
        '{"kinds": ["a"], "columns": [], "boosted": [5]}',
    ],
)
def test_a_damaged_list_of_kinds_is_refused(saved: Path, text: str) -> None:
    (saved / INDEX).write_text(text)
    with pytest.raises(InputError, match="names no kinds of kernels"):
        KernelSum.read(saved)


def test_an_infinite_number_of_features_is_refused(saved: Path) -> None:
    path = saved / "trees_0.json"
    path.write_text(re.sub(r'"num_feature": ?"\d+"', '"num_feature":1e999', path.read_text()))
    with pytest.raises(InputError, match=r"holds no trees.*infinity"):
        KernelSum.read(saved)


def test_what_xgboost_says_of_a_damaged_file_is_cut(saved: Path) -> None:
    path = saved / "trees_0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": ["x" * 10_000, 0, 0]}))
    with pytest.raises(InputError, match="holds no trees") as refused:
        KernelSum.read(saved)
    assert len(str(refused.value)) < 1_000


def test_trees_of_other_features_or_none_are_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="other features"):
        Booster.read(saved / "trees_0.json", 3)
    with pytest.raises(InputError, match="holds no trees"):
        Booster.read(saved / "missing.json", 3)


@pytest.mark.slow
def test_a_search_finds_settings_that_err_less_than_bad_ones() -> None:
    rng = np.random.default_rng(0)
    features = rng.uniform(0, 1, (90, 3))
    target = np.sin(6 * features[:, 0]) + features[:, 1] ** 2
    groups = [f"group {row % 9}" for row in range(90)]
    first = search(features, target, groups, trials=1, seed=0)
    found, again = (search(features, target, groups, trials=3, seed=0) for _ in range(2))
    assert found == again, "one seed gives two searches"
    assert found.error <= first.error and found.rounds in BUDGETS
    ranges = {"max_depth": (5, 11), "min_child_weight": (5, 8), "learning_rate": (0.005, 0.1)}
    assert all(low <= found.settings[name] <= high for name, (low, high) in ranges.items())
