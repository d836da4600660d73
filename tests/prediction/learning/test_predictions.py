"""What a prediction is worth of which a share is for kernels of kinds that were never fitted."""

from __future__ import annotations

import numpy as np

from dlas.prediction.learning.predictions import MOST_UNKNOWN, UNKNOWN_FACTOR, bound


def test_what_is_unknown_widens_an_interval_until_nothing_is_predicted() -> None:
    said, unknown = np.array([1.0, 2.0, 4.0]), np.array([0.0, MOST_UNKNOWN, MOST_UNKNOWN + 0.01])
    value, low, high = bound(said, unknown, np.log(2))
    factor = 2 * (1 + UNKNOWN_FACTOR * unknown[:2])
    np.testing.assert_array_equal(value, [1, 2, np.nan])
    np.testing.assert_allclose(low, [*(said[:2] / factor), np.nan])
    np.testing.assert_allclose(high, [*(said[:2] * factor), np.nan])


def test_without_a_width_a_prediction_has_no_interval() -> None:
    value, low, high = bound(np.array([1.0]), np.array([0.05]), np.array([np.nan]))
    assert value[0] == 1.0 and np.isnan(low[0]) and np.isnan(high[0])
