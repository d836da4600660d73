"""Trees as arrays predict what scikit-learn's predict, and damaged ones are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.forests import Forest

COLUMNS = 6


def table(rows: int, seed: int = 0) -> npt.NDArray[np.float64]:
    return np.random.default_rng(seed).lognormal(10, 3, (rows, COLUMNS))


def ensemble(kind: Any = ExtraTreesRegressor, trees: int = 20) -> Any:
    features = table(80)
    return kind(trees, random_state=0).fit(features, np.log(features @ np.arange(1, COLUMNS + 1)))


@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
@pytest.mark.parametrize("rows", [1, 7, 19, 20, 300])
def test_predictions_equal_scikit_learns(kind: Any, rows: int) -> None:
    fitted = ensemble(kind)
    forest = Forest.of(fitted)
    features = np.concatenate([table(rows, seed=1), table(80)])[:rows]
    np.testing.assert_allclose(forest.predict(features), fitted.predict(features), rtol=1e-12)
    # The rows it was fitted to lie on thresholds more often.
    np.testing.assert_allclose(forest.predict(table(80)), fitted.predict(table(80)), rtol=1e-12)


def test_trees_read_from_their_arrays_predict_the_same() -> None:
    forest = Forest.of(ensemble())
    again = Forest.read(forest.arrays(), COLUMNS)
    assert np.array_equal(forest.predict(table(50, 2)), again.predict(table(50, 2)))


@given(st.data())
def test_altered_trees_are_refused_or_end(data: st.DataObject) -> None:
    arrays = {name: array.copy() for name, array in Forest.of(ensemble(trees=3)).arrays().items()}
    name = data.draw(st.sampled_from(sorted(arrays)))
    place = data.draw(st.integers(0, len(arrays[name]) - 1))
    value = data.draw(st.sampled_from([-1, 0, 1, 5, 2**31 - 1, -(2**31), np.nan, np.inf, -np.inf]))
    if arrays[name].dtype.kind == "i" and not np.isfinite(value):
        value = -7
    arrays[name][place] = value
    try:
        forest = Forest.read(arrays, COLUMNS)
    except InputError:
        return
    assert np.isfinite(forest.predict(table(30, 3))).all()


def test_missing_arrays_and_other_types_are_refused() -> None:
    arrays = Forest.of(ensemble(trees=2)).arrays()
    with pytest.raises(InputError, match="no array 'right'"):
        Forest.read({name: array for name, array in arrays.items() if name != "right"}, COLUMNS)
    with pytest.raises(InputError, match="no array 'feature' of int32"):
        Forest.read({**arrays, "feature": arrays["feature"].astype(float)}, COLUMNS)
    with pytest.raises(InputError, match="differ in length"):
        Forest.read({**arrays, "value": arrays["value"][:-1]}, COLUMNS)
    with pytest.raises(InputError, match="beyond the 2 columns"):
        Forest.read(arrays, 2)
