"""Analysis of variance, rankings that flip, rank correlations, Pareto sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.analysis.correlations import correlations, strength
from dlas.analysis.interactions import Interaction, _shares, interaction, interactions
from dlas.analysis.matching import blocks, natural
from dlas.analysis.pareto import COSTS, pareto, undominated
from dlas.analysis.rankings import ranking, rankings
from dlas.analysis.roles import with_roles
from dlas.sweep.rows import intervals
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import CPU, failing, row, write

ALGORITHMS, COMPILERS, MODELS = ("direct", "gemm", "spatial_pack"), ("untuned", "hand"), ("small", "large")


def points_of(folder: Path, rows: list[Row]) -> pd.DataFrame:
    return with_roles(read(write(folder, rows)))


def sweep(ms: Callable[[int, int, int], float]) -> list[Row]:
    """A row for each algorithm, compiler and model; ``ms`` gets their places."""
    return [
        row(ms(i, j, k), spread=1e-4, algorithm=algorithm, compiler=compiler, model=model)
        for (i, algorithm), (j, compiler), (k, model) in itertools.product(
            enumerate(ALGORITHMS), enumerate(COMPILERS), enumerate(MODELS)
        )
    ]


def between(points: pd.DataFrame) -> Interaction:
    return interaction(points, "algorithm", "compiler")


def test_factors_that_multiply_do_not_interact(tmp_path: Path) -> None:
    found = between(points_of(tmp_path, sweep(lambda i, j, k: 2**i * 5**j * 3**k)))
    assert found.shares[2] == pytest.approx(0, abs=1e-3) and found.shares[3] == pytest.approx(0, abs=1e-3)
    assert found.shares[0] > 0.1 and found.shares[1] > 0.1 and sum(found.shares) == pytest.approx(1)
    assert (found.blocks, found.matched, found.total) == (2, 12, 12)


def test_a_best_choice_that_depends_on_the_other_axis_is_interaction(tmp_path: Path) -> None:
    # Two algorithms that exchange their times: neither axis explains anything alone.
    rows = [
        each for each in sweep(lambda i, j, k: 8 if i == j else 1) if each.algorithm["name"] != "spatial_pack"
    ]
    found = between(points_of(tmp_path, rows))
    assert found.shares[2] == pytest.approx(1, abs=1e-3)


def test_variation_of_effects_between_blocks_is_the_residual(tmp_path: Path) -> None:
    rows = [
        each for each in sweep(lambda i, j, k: 8 if i == k else 1) if each.algorithm["name"] != "spatial_pack"
    ]
    found = between(points_of(tmp_path, rows))
    assert found.shares[3] == pytest.approx(1, abs=1e-3)


@given(st.integers(1, 4), st.integers(2, 4), st.integers(2, 4), st.integers(0, 2**31))
def test_shares_agree_with_a_least_squares_fit(count: int, first: int, second: int, seed: int) -> None:
    logs = np.random.default_rng(seed).normal(size=(count, first, second))
    shares, total = _shares(logs)
    assert sum(shares) == pytest.approx(1)
    at = np.indices(logs.shape).reshape(3, -1)
    columns = [np.eye(size)[at[axis]] for axis, size in enumerate(logs.shape)]
    without = [np.hstack([columns[0], columns[other]]) for other in (2, 1)]
    y = logs.reshape(-1)

    def residual(design: np.ndarray) -> float:
        fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return float(((y - fitted) ** 2).sum())

    both = np.hstack(columns)
    assert total == pytest.approx(residual(columns[0]))
    for axis in (0, 1):
        assert shares[axis] * total == pytest.approx(residual(without[axis]) - residual(both), abs=1e-9)
    cells = np.eye(first * second)[at[1] * second + at[2]]
    explained = residual(both) - residual(np.hstack([both, cells]))
    assert shares[2] * total == pytest.approx(explained, abs=1e-9)


def test_a_value_that_mostly_failed_is_left_out_and_everything_is_counted(tmp_path: Path) -> None:
    rows = sweep(lambda i, j, k: 1 + i + j + k)
    bad = [each for each in rows if each.algorithm["name"] == "spatial_pack"][:3]
    kept = [each for each in rows if each not in bad]
    failed = [failing(algorithm=each.algorithm, compiler=each.compiler, model=each.model) for each in bad]
    libraries = [row(1, algorithm="library", compiler="onnxruntime", model=model) for model in MODELS]
    found = between(points_of(tmp_path, [*kept, *failed, *libraries]))
    assert found.values == (["direct", "gemm"], ["hand", "untuned"]) and found.matched == 8
    assert (found.failed, found.library, found.incomplete) == (3, 2, 1)
    assert found.matched + found.failed + found.library + found.incomplete == found.total == 14


def test_without_a_complete_block_nothing_is_claimed(tmp_path: Path) -> None:
    diagonal = [row(1), row(2, algorithm="gemm", compiler="hand")]
    found = between(points_of(tmp_path, diagonal))
    assert not found.comparable and found.matched == 0 and np.isnan(found.shares).all()
    assert interactions(points_of(tmp_path / "one", [row()])) == []


def test_noise_is_the_interaction_expected_from_the_intervals_alone(tmp_path: Path) -> None:
    loud = [row(10, spread=0.3, algorithm=a, compiler=c, samples=10) for a in ALGORITHMS for c in COMPILERS]
    found = between(points_of(tmp_path, loud))
    assert found.noise > 0.1
    quiet = between(points_of(tmp_path / "quiet", sweep(lambda i, j, k: 2**i * 5**j)))
    assert quiet.noise < 1e-3


def test_pairs_are_ordered_by_their_interaction(tmp_path: Path) -> None:
    found = interactions(points_of(tmp_path, sweep(lambda i, j, k: (8 if i == j else 1) * 2**k)))
    assert found[0].axes == ("algorithm", "compiler") and len(found) == 3


def test_blocks_hold_points_equal_in_all_else(tmp_path: Path) -> None:
    points = points_of(
        tmp_path, [*sweep(lambda i, j, k: 1 + i + j + k), row(9, id="other", device={**CPU, "cpu": "Real 1"})]
    )
    found = blocks(points, "algorithm", "compiler")
    assert found.points.shape == (3, 3, 2)
    assert sorted((found.points >= 0).sum(axis=(1, 2)).tolist()) == [1, 6, 6]
    assert np.isnan(found.of(points["latency_s"])).sum() == 5
    across = blocks(points, "hardware", "algorithm")
    assert [value.split(",")[0] for value in across.values[0]] == [
        "local_cpu on Imaginary 9000",
        "local_cpu on Real 1",
    ]
    assert (across.points >= 0).sum() == 13


@given(st.lists(st.text("abc0189.(", max_size=6)))
def test_labels_have_one_order(labels: list[str]) -> None:
    assert sorted(labels, key=natural) == sorted(reversed(labels), key=natural) or len(set(labels)) < len(
        labels
    )
    assert sorted(["x(64)", "x(512)", "8", "16", "word"], key=natural) == [
        "8",
        "16",
        "word",
        "x(64)",
        "x(512)",
    ]


def test_a_reversed_order_is_a_flip(tmp_path: Path) -> None:
    points = points_of(tmp_path, sweep(lambda i, j, k: 1 + i if j else 10 - i))
    found = ranking(points, "algorithm", "compiler")
    assert (found.kept, found.flipped, found.ties) == (0, 6, 0) and found.correlation == -1
    assert found.examples[0] == ("direct ↔ gemm, hand against untuned", 2, 2)
    steady = ranking(points, "algorithm", "model")
    assert (steady.kept, steady.flipped) == (6, 0) and steady.correlation == 1


def test_overlapping_intervals_neither_keep_nor_flip(tmp_path: Path) -> None:
    rows = [
        row(10 + i / 100, spread=0.2, algorithm=a, compiler=c)
        for i, a in enumerate(ALGORITHMS[:2])
        for c in COMPILERS
    ]
    found = ranking(points_of(tmp_path, rows), "algorithm", "compiler")
    assert (found.kept, found.flipped, found.ties) == (0, 0, 1)


def test_rankings_begin_with_what_flips_most(tmp_path: Path) -> None:
    found = rankings(points_of(tmp_path, sweep(lambda i, j, k: (1 + i if j else 10 - i) * 3**k)))
    assert (found[0].ranked, found[0].along) == ("algorithm", "compiler")
    assert {(one.ranked, one.along) for one in found} == set(
        itertools.permutations(("algorithm", "compiler", "model"), 2)
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9)), min_size=4, max_size=12))
def test_a_rank_correlation_is_spearmans(pairs: list[tuple[float, float]]) -> None:
    x, y = (np.array(values) for values in zip(*pairs, strict=True))
    value, low, high = intervals.rank_correlation(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan([value, low, high]).all()
    else:
        assert value == pytest.approx(pd.Series(x).corr(pd.Series(y), method="spearman"), abs=1e-9)
        assert -1 - 1e-9 <= low <= high <= 1 + 1e-9


def networks(latencies: list[float]) -> list[Row]:
    return [
        row(ms, model=f"net{n}", macs=10**6 * (n + 1), parameters=10**6, accuracy=0.9 + n / 100)
        for n, ms in enumerate(latencies)
    ]


def test_networks_are_compared_at_their_fastest(tmp_path: Path) -> None:
    slow = [row(100 - n, model=f"net{n}", algorithm="gemm", macs=10**6 * (n + 1)) for n in range(6)]
    found = correlations(points_of(tmp_path, [*networks([1, 2, 3, 4, 5, 6]), *slow]))
    line = found[(found["first"] == "macs") & (found["second"] == "latency_s")].iloc[0]
    assert line["correlation"] == pytest.approx(1) and line["networks"] == 6
    assert strength(line["low"], line["high"]) == "strong"
    constant = found[(found["first"] == "macs") & (found["second"] == "parameters")].iloc[0]
    assert "same for all" in constant["missing"]


def test_too_few_networks_correlate_with_nothing(tmp_path: Path) -> None:
    found = correlations(points_of(tmp_path, networks([1, 2, 3])))
    assert found["correlation"].isna().all() and found["missing"].str.contains("4 networks").all()


def test_strength_depends_on_the_whole_interval() -> None:
    assert [strength(*ends) for ends in ((0.7, 0.9), (-1, -0.8), (-0.6, 0.6), (0.1, 0.9))] == [
        "strong",
        "strong",
        "weak",
        "open",
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_the_pareto_set_is_undominated(things: list[tuple[int, int]]) -> None:
    cost, accuracy = (np.array([thing[at] for thing in things], dtype=float) for at in (0, 1))
    kept = undominated(cost, accuracy)
    for mine, thing in zip(kept, things, strict=True):
        beaten = any(other[0] <= thing[0] and other[1] >= thing[1] and other != thing for other in things)
        assert mine == (not beaten)


def test_a_pareto_set_is_of_one_place_and_of_what_works(tmp_path: Path) -> None:
    points = points_of(
        tmp_path,
        [
            row(5, model="a", accuracy=0.9),
            row(9, model="b", accuracy=0.8),
            row(9, model="b", batch=8),
            failing(model="c", accuracy=0.99),
        ],
    )
    assert pareto(points, "latency_s").tolist() == [True, False, True, False]


def test_a_pareto_set_of_energy_is_of_points_that_have_one(tmp_path: Path) -> None:
    points = points_of(
        tmp_path,
        [
            row(5, model="a", accuracy=0.9, energy_j=0.3),
            row(9, model="b", accuracy=0.8, energy_j=0.1),
            row(9, model="c", accuracy=0.7, energy_j=0.2),
            row(1, model="d", accuracy=0.99),
        ],
    )
    assert "energy_j" in COSTS and pareto(points, "energy_j").tolist() == [True, True, False, False]
