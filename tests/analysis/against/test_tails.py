"""Tails of errors: of a few points that differ by several times what most do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dlas.analysis.against.tails import Tails, likeliest

WIDE = Tails(30.0, share=0.2, factor=6.0)


@pytest.mark.parametrize("tails", [Tails(4.0), WIDE])
def test_distances_have_their_chances(tails: Tails) -> None:
    for chance in (0.5, 0.05, 0.001):
        assert tails.chances(np.array([-tails.distance(chance)])) == pytest.approx(chance)
    assert Tails(4.0).distance(0.05) == pytest.approx(stats.t.ppf(0.975, 4))
    assert WIDE.distance(0.01) > 5 > 3 > Tails(30.0).distance(0.01)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_points_tell_how_many_of_them_are_wide(seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors = 0.8 * rng.standard_normal(400) * np.where(rng.random(400) < 0.2, 6, 1)
    tails, scale, _ = likeliest(errors, 30.0)
    assert 0.1 <= tails.share <= 0.3 and 4 <= tails.factor <= 8 and 0.7 <= scale <= 0.9
    # As many are beyond a distance as the tails say.
    for chance in (0.1, 0.02):
        beyond = np.mean(np.abs(errors / scale) > tails.distance(chance))
        assert beyond == pytest.approx(chance, abs=0.04)
    assert likeliest(rng.standard_normal(400), 30.0)[0].share == 0
