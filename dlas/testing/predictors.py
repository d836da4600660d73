"""The contract of predictors: repeatable, stored without loss, and each row by itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from dlas.learning.features import columns
from dlas.stack import Fitted, Predictor, Samples
from dlas.testing.faults import checking
from dlas.testing.networks import workspace

TARGETS = ("latency_s", "peak_memory_bytes")
ROWS = 60
GROUPS = 6


def check_predictor(predictor: Predictor) -> None:
    """Check the contract of a predictor, for a time and for memory.

    - Predictions are finite and positive, one for each row, and a row's does not depend on the others.
    - The same rows and seed give the same predictions.
    - What was saved and loaded predicts the same, bit for bit, and no file is a pickle.
    - ``importances`` has one number for each column, or is None.

    Parameters
    ----------
    predictor : Predictor

    Raises
    ------
    AssertionError
    """
    with checking(predictor):
        for target in TARGETS:
            with tempfile.TemporaryDirectory() as folder:
                _check_on(predictor, made_up(predictor, target), Path(folder))


def made_up(predictor: Predictor, target: str, seed: int = 0) -> Samples:
    """Return rows with the features that a predictor reads, and a target that they add up to."""
    names = columns(predictor.families(target))
    rng = np.random.default_rng(seed)
    features = rng.lognormal(12, 2, (ROWS, len(names)))
    rates = rng.uniform(0.5, 2, len(names)) * 1e-9
    measured = (1e-3 + features @ rates) * rng.normal(1, 0.02, ROWS)
    groups = tuple(f"group {row % GROUPS}" for row in range(ROWS))
    return Samples(tuple(map(str, range(ROWS))), names, features, measured, groups)


def _check_on(predictor: Predictor, samples: Samples, root: Path) -> None:
    fitted, again = (_fit(predictor, samples, root / name) for name in ("first", "second"))
    predicted = _checked(fitted, samples)
    assert np.array_equal(predicted, again.predict(samples)), "one seed gives two predictors"
    alone = np.concatenate([fitted.predict(samples.take([row])) for row in range(len(samples))])
    assert np.allclose(alone, predicted, rtol=1e-12, atol=0), (
        "a row's prediction depends on the rows beside it"
    )
    folder = root / "saved"
    folder.mkdir()
    fitted.save(folder)
    files = sorted(path.name for path in folder.iterdir())
    assert all(name.endswith((".safetensors", ".json")) for name in files), f"it saves {files}"
    assert np.array_equal(predicted, predictor.load(folder).predict(samples)), "loaded, it predicts otherwise"
    shares = fitted.importances()
    assert shares is None or len(shares) == len(samples.columns), "importances are not one for each column"


def _fit(predictor: Predictor, samples: Samples, folder: Path) -> Fitted:
    return predictor.fit(samples, workspace(folder))


def _checked(fitted: Fitted, samples: Samples) -> np.ndarray:
    """Return the predictions after checking that each is a positive number."""
    predicted = fitted.predict(samples)
    assert predicted.shape == (len(samples),), f"{predicted.shape} predictions for {len(samples)} rows"
    assert np.isfinite(predicted).all() and (predicted > 0).all(), "a prediction is no positive number"
    return predicted
