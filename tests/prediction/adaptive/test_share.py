"""A share of a study: what is chosen, what is said of the other points, and how far that can be trusted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pytest
from scipy.stats import norm

from dlas.errors import InputError, Unfinished
from dlas.prediction.adaptive.share.acquisition import fastest, first_share
from dlas.prediction.adaptive.share.covariance import Covariance
from dlas.prediction.adaptive.share.multiply_adds import macs_of_rows
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.posterior import Posterior
from dlas.prediction.adaptive.share.share import (
    batches_of_share,
    budget_of,
    check_covers,
    predict_rest,
    process_of,
)
from dlas.prediction.adaptive.share.space import ABSENT, Space
from dlas.prediction.adaptive.share.trends import SLOPES
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study
from tests.fixtures.package import ROOT

RECORDED = ROOT / "experiments/tuned-vs-untuned/rows"
STUDY = """
name = "made-up"
[axes]
model = ["cifar_resnet18", "cifar_vgg16", { name = "cifar_mobilenet_v2", width = [0.25, 0.5, 1.0] }]
compression = ["none", { name = "weight_pruning", level = [0.5, 0.75, 0.9] }]
algorithm = ["direct", "gemm", { name = "winograd", tile = [2, 4] }]
compiler = ["untuned", "hand", "onnxruntime"]
batch = [1, 8]
"""


@pytest.fixture(scope="module")
def space() -> Space:
    return Space.of([*Study.parse(STUDY).points()])


@pytest.fixture(scope="module")
def truth(space: Space) -> list[float]:
    """Latencies of effects of each axis and of pairs of them, and noise of 3 %."""
    rng = np.random.default_rng(0)
    values = ((factor.name, value) for factor in space.factors for value in factor.values)
    effects = {value: rng.normal(0, 0.8) for value in values}
    pairs = {
        (a, c): rng.normal(0, 0.2)
        for a in ("direct", "gemm", "winograd", "library")
        for c in ("untuned", "hand", "onnxruntime")
    }
    found = []
    for point in space.points:
        levels = dict(point.compression.options)
        logarithm = effects["model", point.model.name] + effects["algorithm", point.algorithm.name]
        logarithm += effects["compiler", point.compiler.name] + 0.9 * math.log(point.batch)
        logarithm += pairs[point.algorithm.name, point.compiler.name]
        logarithm += 0.7 * math.log(1 - levels.get("level", 0.0)) + 1.2 * math.log(
            dict(point.model.options).get("width", 1.0)
        )
        found.append(1e-3 * math.exp(logarithm + rng.normal(0, 0.03)))
    return found


class Recorder:
    """Measures by looking up, and notes what was asked for; it is interrupted before a batch."""

    def __init__(self, seconds: Sequence[float | None], interrupted: int | None = None) -> None:
        self.seconds, self.interrupted = seconds, interrupted
        self.batches: list[list[int]] = []

    def __call__(self, places: Sequence[int]) -> dict[int, PointOutcome]:
        if len(self.batches) == self.interrupted:
            raise KeyboardInterrupt
        self.batches.append([*places])
        return {place: outcome(self.seconds[place]) for place in places}


def outcome(seconds: float | None) -> PointOutcome:
    return PointOutcome(seconds, "" if seconds else "failed: it does not build")


def explored(
    space: Space,
    share: float,
    recorder: Recorder,
    known: Mapping[int, PointOutcome] = MappingProxyType({}),
    seed: int = 0,
    again: Sequence[int] = (),
) -> dict[int, PointOutcome]:
    """Return what became of a share, whatever was known of it."""
    found = dict(known)
    for batch in batches_of_share(space, share, first_share(space, seed), found, seed=seed, again=again):
        told = recorder(batch)
        found |= {place: told.get(place, PointOutcome(None, "it has no row")) for place in batch}
    return found


def errors(space: Space, truth: Sequence[float], known: dict[int, PointOutcome]) -> np.ndarray:
    """Return the relative errors of the points that are not known."""
    rest = np.array([place for place in range(len(space)) if place not in known])
    means, _ = process_of(space, known).predict(rest)
    return np.asarray(np.abs(np.exp(means) / np.array(truth)[rest] - 1))


def test_factors_are_parts_and_options_with_their_defaults(space: Space) -> None:
    factors = {factor.name: factor for factor in space.factors}
    parts = {"model", "compression", "algorithm", "compiler", "batch"}
    assert {factor.name for factor in space.choices} == parts | {
        *("model.width", "compression.level", "algorithm.tile")
    }
    assert factors["kind of compiler"].values == ("untuned", "scheduled", "own kernels")
    assert factors["model.width"].values == ("1.0", "0.25", "0.5"), "the default is a value, too"
    widths = factors["model.width"].places
    assert widths is not None and {*widths} == {0, 0.5, 1}, "equal ratios are equal distances"
    tiles = factors["algorithm.tile"]
    assert tiles.places is not None and (np.isnan(tiles.places) == (tiles.codes == ABSENT)).all()
    tiled = [place for place, point in enumerate(space.points) if point.algorithm.name == "winograd"]
    assert {*np.flatnonzero(tiles.codes != ABSENT)} == {*tiled}, "other algorithms have no tiles"
    levels = factors["compression.level"]
    assert levels.places is not None and np.nanmin(levels.places) == 0
    dense = [place for place, point in enumerate(space.points) if point.compression.name == "none"]
    assert (levels.places[dense] == 0).all(), "a dense network has level 0"
    by_value = dict(zip(levels.values, [0, 1 / 3.32, 2 / 3.32, 1], strict=True))
    for value, expected in by_value.items():
        code = levels.values.index(value)
        found = levels.places[levels.codes == code]
        assert found == pytest.approx(expected, abs=1e-3), "what is left counts"


def test_the_first_share_has_every_value_and_few_points(space: Space) -> None:
    chosen = first_share(space, seed=3)
    for factor in space.factors:
        assert {*range(len(factor.values))} <= {*factor.codes[chosen]}, factor.name
    assert len(chosen) <= 7
    assert first_share(space, seed=3) == chosen


def test_batches_go_on_to_the_share_and_none_is_measured_twice(space: Space, truth: list[float]) -> None:
    recorder = Recorder(truth)
    known = explored(space, 0.1, recorder)
    assert recorder.batches[0] == first_share(space, 0)
    assert len(known) == math.ceil(len(space) / 10) == sum(map(len, recorder.batches))
    assert len(recorder.batches) > 2


@pytest.mark.slow
def test_an_interrupted_exploration_goes_on_and_a_larger_share_extends_it(
    space: Space, truth: list[float]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        explored(space, 0.05, recorder := Recorder(truth, interrupted=2))
    done = {place: outcome(truth[place]) for batch in recorder.batches for place in batch}
    rest = Recorder(truth)
    known = explored(space, 0.05, rest, done)
    assert not {*done} & {place for batch in rest.batches for place in batch}
    assert known == explored(space, 0.05, Recorder(truth)), "as if it had not been interrupted"
    assert {*known} < {*explored(space, 0.1, Recorder(truth), known)}
    assert explored(space, 0.02, Recorder(truth, interrupted=0), known) == known


def test_a_chosen_tenth_says_more_than_a_random_one(space: Space, truth: list[float]) -> None:
    chosen, drawn = [], []
    for seed in range(2):
        known = explored(space, 0.1, Recorder(truth), seed=seed)
        places = np.random.default_rng(seed).choice(len(space), len(known), replace=False)
        chosen.append(errors(space, truth, known).mean())
        drawn.append(errors(space, truth, {place: outcome(truth[place]) for place in places.tolist()}).mean())
    assert statistics.mean(chosen) < statistics.mean(drawn)
    assert statistics.mean(chosen) < 0.06


@pytest.mark.slow
def test_intervals_cover_what_was_not_measured(space: Space, truth: list[float]) -> None:
    shares = []
    for seed in range(3):
        rest = predict_rest(space, explored(space, 0.1, Recorder(truth), seed=seed))
        measured = np.array(truth)[rest.rows]
        shares.append(((rest.low <= measured) & (measured <= rest.high)).mean())
    assert 0.8 <= np.mean(shares) <= 0.99
    assert len(rest.rows) == len(space) - math.ceil(len(space) / 10) and not any(rest.doubts)
    assert rest.error is not None and 0 < rest.error < 0.3 and len(rest.digest) == 64


def test_a_value_that_never_ends_well_is_tried_given_up_and_told(space: Space, truth: list[float]) -> None:
    broken = [
        None if point.compiler.name == "hand" else seconds
        for point, seconds in zip(space.points, truth, strict=True)
    ]
    known = explored(space, 0.1, Recorder(broken))
    tried = [place for place in known if space.points[place].compiler.name == "hand"]
    assert len(tried) >= 3 and all(known[place].seconds is None for place in tried)
    rest = predict_rest(space, known)
    assert {space.points[place].compiler.name for place in rest.left_out} == {"hand"}
    assert {*rest.left_out.values()} == {"no point with compiler hand has a time: failed: it does not build"}
    assert {*rest.rows.tolist(), *rest.left_out, *known} == {*range(len(space))}


def test_a_value_that_fails_as_often_as_not_is_in_doubt(space: Space, truth: list[float]) -> None:
    known = explored(space, 0.1, Recorder(truth))
    of_gemm = [place for place in known if space.points[place].algorithm.name == "gemm"]
    known |= dict.fromkeys(of_gemm[1:], PointOutcome(None, "wrong"))
    rest = predict_rest(space, known)
    for place, doubt in zip(rest.rows.tolist(), rest.doubts, strict=True):
        assert ("with algorithm gemm have no time" in doubt) == (space.points[place].algorithm.name == "gemm")


def test_nothing_is_said_where_no_point_has_a_time(space: Space) -> None:
    recorder = Recorder([None] * len(space))
    known = explored(space, 0.1, recorder)
    with pytest.raises(Unfinished, match="has a time, so that nothing can be predicted; the first: failed"):
        predict_rest(space, known)


def test_few_points_have_no_intervals(space: Space, truth: list[float]) -> None:
    rest = predict_rest(space, {place: outcome(truth[place]) for place in range(4)})
    assert np.isnan(rest.low).all() and np.isfinite(rest.seconds).all()


def test_everything_measured_leaves_nothing_to_predict(space: Space, truth: list[float]) -> None:
    few = Space.of(space.points[:30])
    rest = predict_rest(few, {place: outcome(truth[place]) for place in range(30)})
    assert not len(rest.rows) and not rest.left_out


@pytest.mark.parametrize("share", [0, -0.1, 1.01, math.nan])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"`share=.*`: expected a share above 0 and at most 1"):
        budget_of(share, 10)


def test_a_share_too_small_for_every_value_says_how_many_points_it_takes(space: Space) -> None:
    needed = len(first_share(space, 0))
    with pytest.raises(InputError, match=rf"`share=0\.001` of .* points is 1 point, and it takes {needed}"):
        check_covers(space, 0.001, needed)
    with pytest.raises(InputError) as refused:
        check_covers(space, 0.001, needed)
    check_covers(space, float(str(refused.value).rpartition("give `share=")[2].partition("`")[0]), needed)


def test_the_slopes_of_the_covariance_are_its_slopes(space: Space) -> None:
    rows = np.arange(0, len(space), 37)
    covariance = Covariance.of(space, np.linspace(-1, 1, len(space)))
    usual, _ = covariance.usual()
    parameters = usual + np.linspace(-0.2, 0.2, len(usual))
    matrix, slopes = covariance.with_slopes(parameters, rows)
    noise = math.exp(2 * parameters[0]) * np.eye(len(rows))
    assert np.allclose(matrix, covariance.between(parameters, rows, rows) + noise)
    assert np.allclose(np.diag(matrix - noise), covariance.variances(parameters, rows))
    for place, slope in enumerate(slopes):
        step = np.zeros(len(usual))
        step[place] = 1e-5
        above, below = (covariance.with_slopes(parameters + sign * step, rows)[0] for sign in (1, -1))
        assert np.allclose(slope, (above - below) / 2e-5, atol=1e-6), covariance.names[place]
    assert len(slopes) == len(usual) == len(covariance.names)


def test_the_fastest_of_each_group_has_the_shortest_latency() -> None:
    latencies = np.array([2.0, 1.0, math.nan, 3.0, math.nan])
    assert sorted(fastest(latencies, np.array([0, 0, 0, 1, 2]))) == [1, 3]


def test_a_recorded_sweep_is_explored_better_than_at_random() -> None:
    rows = [row for row in read_rows(RECORDED) if row.timed]
    recorded = Space.of([Point.of(vars(row)) for row in rows])
    seconds = [statistics.median(row.latency_s) for row in rows]
    outcomes = {place: PointOutcome(seconds[place], macs=row.macs) for place, row in enumerate(rows)}
    first = first_share(recorded, 0)
    known: dict[int, PointOutcome] = {}
    for batch in batches_of_share(recorded, 0.2, first, known):
        known |= {place: outcomes[place] for place in batch}
    at_random = []
    for seed in range(3):
        drawn = np.random.default_rng(seed).choice(len(rows), len(known), replace=False)
        at_random.append(errors(recorded, seconds, {at: outcomes[at] for at in drawn.tolist()}).mean())
    assert errors(recorded, seconds, known).mean() < statistics.mean(at_random)


def test_multiply_adds_that_are_told_beforehand_make_a_tenth_say_more() -> None:
    rows = [row for row in read_rows(RECORDED) if row.timed]
    points = [Point.of(vars(row)) for row in rows]
    seconds = [statistics.median(row.latency_s) for row in rows]
    outcomes = {place: PointOutcome(seconds[place], macs=row.macs) for place, row in enumerate(rows)}
    found = []
    for macs in ({}, macs_of_rows(rows)):
        space, of_seeds = Space.of(points, macs), []
        for seed in range(3):
            known: dict[int, PointOutcome] = {}
            for batch in batches_of_share(space, 0.1, first_share(space, seed), known, seed=seed):
                known |= {place: outcomes[place] for place in batch}
            of_seeds.append(errors(space, seconds, known).mean())
        found.append(statistics.mean(of_seeds))
    assert found[1] < 0.9 * found[0]


def test_a_batch_that_was_measured_in_part_is_gone_on_with(space: Space, truth: list[float]) -> None:
    with pytest.raises(KeyboardInterrupt):
        explored(space, 0.1, recorder := Recorder(truth, interrupted=3))
    kept = [place for batch in recorder.batches[:2] for place in batch] + recorder.batches[2][:1]
    done = {place: outcome(truth[place]) for place in kept}
    known = explored(space, 0.1, rest := Recorder(truth), done)
    assert len(known) == budget_of(0.1, len(space)) and done.items() <= known.items()
    assert not {*done} & {place for batch in rest.batches for place in batch}


def test_points_to_be_measured_again_are_the_first_batch_where_they_fit(
    space: Space, truth: list[float]
) -> None:
    known = explored(space, 0.05, Recorder(truth))
    again = [*known][:10]
    standing = {place: each for place, each in known.items() if place not in again}
    recorder = Recorder(truth)
    assert explored(space, 0.05, recorder, standing, again=again) == known
    assert recorder.batches == [again]
    explored(space, 0.05, recorder := Recorder(truth), again=range(len(space)))
    assert recorder.batches[0] == first_share(space, 0), "all of a study do not fit a share of it"


def test_the_share_finds_points_that_are_nearly_the_fastest(space: Space, truth: list[float]) -> None:
    seconds = np.array(truth)
    known = explored(space, 0.1, Recorder(truth))
    looks = seconds.copy()
    rest = np.array([place for place in range(len(space)) if place not in known])
    looks[rest] = np.exp(process_of(space, known).predict(rest)[0])
    guessed, best = fastest(looks, space.rivals), fastest(seconds, space.rivals)
    assert (seconds[guessed] / seconds[best] - 1).mean() < 0.03


def test_a_measurement_is_worth_what_it_is_expected_to_shorten() -> None:
    means, deviations = np.array([0.0, 0.1, 3.0]), np.array([0.2, 0.3, 0.1])
    rows, rivals = np.arange(3), np.zeros(3, dtype=np.intp)
    posterior = Posterior(rows, means, np.diag(deviations**2), noise=0.0)
    found = posterior.knowledge_gradient(rows, rivals, np.array([np.inf]))
    for place, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
        away = -abs(mean - np.delete(means, place).min()) / deviation
        expected = deviation * (away * norm.cdf(away) + norm.pdf(away))
        assert found[place] == pytest.approx(expected, abs=0.008)
    measured = posterior.knowledge_gradient(rows, rivals, np.array([-5.0]))
    assert measured.max() < 1e-6, "nothing comes near what was measured"
    assert (posterior.knowledge_gradient(rows, rows, np.full(3, np.inf)) == 0).all(), "there are no rivals"


def test_a_measurement_shortens_what_looks_fastest_among_points_that_are_like_it() -> None:
    """Two groups of rivals: the first of each are alike, and so are the second of each."""
    matrix = np.kron(np.array([[0.04, 0.036], [0.036, 0.04]]), np.eye(2)).astype(np.float64)
    rows, rivals = np.arange(4), np.array([0, 0, 1, 1])
    posterior = Posterior(rows, np.zeros(4), matrix, noise=0.01)
    together = posterior.knowledge_gradient(rows, rivals, np.full(2, np.inf))
    alone = Posterior(rows, np.zeros(4), 0.04 * np.eye(4), noise=0.01)
    assert (together > 1.5 * alone.knowledge_gradient(rows, rivals, np.full(2, np.inf))).all()
    posterior.see(0)
    assert posterior.knowledge_gradient(rows, rivals, np.full(2, np.inf))[2] < together[2]


PRUNED = """
name = "pruned"
[axes]
model = ["cifar_resnet18"]
compression = [
    "none",
    { name = "weight_pruning", level = 0.9 },
    { name = "compact_channel_pruning", level = 0.5 },
]
algorithm = ["gemm", "csr_direct", "blocked"]
compiler = ["untuned", "metaschedule", "onnxruntime"]
batch = [1, 4]
"""


def test_what_is_known_of_latencies_before_one_is_measured() -> None:
    space = Space.of([*Study.parse(PRUNED).points()])
    trends = {trend.name: trend.values for trend in space.trends}
    assert {*trends} == {*SLOPES} - {"multiply-adds", "threads"}, "of threads all have the same"

    def apart(name: str, **wanted: object) -> set[float]:
        """Return by how much points of some values differ from the least values of the trend."""
        chosen = [
            place
            for place, point in enumerate(space.points)
            if all(str(getattr(point, axis)).startswith(str(value)) for axis, value in wanted.items())
        ]
        assert chosen
        return {round(float(value), 3) for value in trends[name][chosen] - trends[name].min()}

    assert apart("batch", batch=4) == {round(math.log(4), 3)}
    skipped = apart("weights left", compression="weight_pruning", algorithm="csr_direct")
    assert skipped == {0} and trends["weights left"].max() - trends["weights left"].min() == pytest.approx(
        math.log(10)
    )
    for dense in ("gemm", "library"):
        assert apart("weights left", compression="weight_pruning", algorithm=dense) == {2.303}
    assert apart("channels left", compression="compact") == {0}, "whatever computes them"
    assert apart("channels left", compression="weight_pruning") == {0.693}
    assert apart("without a schedule", compiler="untuned") == {1}
    assert apart("without a schedule", compiler="onnxruntime") == {0}
    assert apart("searched", compiler="metaschedule") == {1}
    assert apart("chosen by layer", algorithm="blocked") == {1}
    assert apart("chosen by layer", algorithm="gemm") == {0}


def test_usual_trends_are_predicted_from_one_measurement() -> None:
    space = Space.of([*Study.parse(PRUNED).points()])
    process = process_of(space, {0: PointOutcome(0.01)})
    usual = sum((trend.slope * trend.values for trend in space.trends), np.zeros(len(space)))
    means, variances = process.predict(np.arange(len(space)))
    assert means - means[0] == pytest.approx(np.asarray(usual - usual[0]), abs=0.05)
    assert (variances[1:] > 10 * variances[0]).all(), "it is as sure of no other"
