"""Intervals of networks from the errors of their kernels: narrower for many, as wide for equal ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dlas.prediction.learning.fitting import Calibration, HeldOut, calibrated
from dlas.prediction.learning.intervals import with_networks
from dlas.prediction.learning.kernel_spread import STRANGE, KernelSpread, PredictedKernels
from dlas.prediction.learning.splits import Fold
from dlas.stack import Kernels, Samples
from dlas.stack.types import Floats

FEW, MANY = 4, 60
SECONDS = 1e-3
"""What each kernel is predicted to take."""


def networks(counts: Sequence[int], seed: int, common: float = 0.05, own: float = 0.4) -> PredictedKernels:
    """Return networks of so many kernels, whose measured times err by deviations, in the mean by nothing."""
    rng = np.random.default_rng(seed)
    points = np.repeat(np.arange(len(counts)), counts)
    errors = rng.normal(0, common, len(counts))[points] + rng.normal(-(own**2) / 2, own, len(points))
    kernels = Kernels(
        points,
        np.full(len(points), "conv"),
        ("size",),
        np.arange(len(points), dtype=np.float64)[:, None],
        SECONDS * np.exp(errors),
    )
    return PredictedKernels(kernels, np.full(len(points), SECONDS), len(counts))


def wholes(given: PredictedKernels) -> tuple[Floats, Floats]:
    """Return the predicted and the measured time of each network."""
    points = given.kernels.points
    return tuple(np.bincount(points, each, given.networks) for each in (given.predicted, given.measured))  # type: ignore[return-value]


def calibration_of(given: PredictedKernels, quantity: str = "latency_s") -> Calibration:
    """Return how wide intervals are after networks were held out."""
    predicted, measured = wholes(given)
    names = tuple(map(str, range(given.networks)))
    samples = Samples(names, (), np.zeros((len(names), 0)), measured, names, quantity, given.kernels)
    fold = Fold("all", np.arange(0), np.arange(len(names)))
    return calibrated(samples, [HeldOut(fold, predicted, given)])


def test_networks_of_many_kernels_have_narrower_intervals_that_cover_as_often() -> None:
    covered: dict[int, list[float]] = {FEW: [], MANY: []}
    half: dict[int, list[float]] = {FEW: [], MANY: []}
    for seed in range(20):
        found = calibration_of(networks([1, 2, FEW, 12] * 40, seed))
        for count, shares in covered.items():
            given = networks([count] * 50, 1000 + seed)
            predicted, measured = wholes(given)
            widths = found.of(given, given.networks)
            assert widths is not None and np.ptp(widths) < 1e-12
            shares.append(float(np.mean(np.abs(np.log(measured / predicted)) <= widths)))
            half[count].append(widths[0])
    assert np.mean(half[MANY]) < 0.6 * np.mean(half[FEW])
    assert 0.85 < np.mean(covered[FEW]) < 0.96
    assert 0.85 < np.mean(covered[MANY]) <= 1.0


def test_equal_kernels_of_a_network_err_together() -> None:
    spread = KernelSpread(kinds={"conv": (0.1, 0.4)}, mean=(0.1, 0.4), common=0.0, own=1.0)
    given = networks([16], 0)
    apart = spread.scales(given)
    equal = Kernels(
        given.kernels.points, given.kinds, ("size",), np.zeros_like(given.kernels.features), given.measured
    )
    together = spread.scales(PredictedKernels(equal, given.predicted, 1))
    assert (apart[0], together[0]) == pytest.approx((0.4 / 4, 0.4))
    short = PredictedKernels(given.kernels, np.full(16, 1e-6), 1)
    assert spread.scales(short)[0] == pytest.approx(0.1 / 4)


def test_kinds_that_none_was_held_out_of_are_less_sure() -> None:
    spread = KernelSpread(kinds={}, mean=(0.1, 0.3), common=0.0, own=1.0)
    assert spread.scales(networks([1], 0))[0] == pytest.approx(STRANGE * 0.3)


def test_the_network_in_the_middle_has_a_scale_of_1_and_one_without_kernels_what_is_common() -> None:
    given = networks([FEW] * 30 + [MANY] * 31, 0)
    predicted, measured = wholes(given)
    spread = KernelSpread.fitted([given], np.log(measured / predicted))
    scales = spread.scales(given)
    assert np.median(scales) == pytest.approx(1)
    assert scales[:30].min() > 1
    empty = PredictedKernels(given.kernels.take(np.zeros(len(given.kernels), dtype=bool)), np.empty(0), 1)
    assert spread.scales(empty) == pytest.approx([spread.common])


def test_energy_has_one_width_for_all() -> None:
    found = calibration_of(networks([FEW] * 30, 0), "energy_j")
    assert found.spread is None and found.half_width is not None


def test_networks_measured_after_a_fit_say_how_wide_intervals_are() -> None:
    width = 0.4
    assert with_networks(width, np.full(5, width / 1.645)) == pytest.approx(1.102 * width, rel=1e-3)
    assert with_networks(width, np.full(5, 0.01)) < 0.8 * width
    assert with_networks(width, np.full(5, width)) > 1.4 * width
