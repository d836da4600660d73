"""The contract of predictors: repeatable, stored without loss, and each row by itself."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.errors import InputError
from dlas.networks.subnets.written import draw
from dlas.prediction.learning.features import OF_OPTIONS, columns
from dlas.prediction.learning.features.kernels import COLUMNS
from dlas.prediction.learning.features.subnets import DEVICE, Options, SubnetOptions
from dlas.stack import Fitted, Kernels, Predictor, Samples
from dlas.testing.faults import checking
from dlas.testing.networks import workspace

TARGETS = ("latency_s", "peak_memory_bytes")
ROWS = 60
GROUPS = 6


def check_predictor(predictor: Predictor) -> None:
    """Check the contract of a predictor, for a time and for memory.

    - A target that it cannot predict is an ``InputError``.
    - Predictions are finite and positive, one for each row, and a row's does not depend on the others.
    - The same rows and seed give the same predictions.
    - What was saved and loaded predicts the same, bit for bit, and no file is a pickle.
    - ``importances`` has one number for each column, or is None.

    Raises
    ------
    AssertionError
    """
    with checking(predictor):
        for target in filter(functools.partial(_predicts, predictor), TARGETS):
            with tempfile.TemporaryDirectory() as folder:
                _check_on(predictor, made_up(predictor, target), Path(folder))


def made_up(predictor: Predictor, target: str, seed: int = 0) -> Samples:
    """Return rows with what a predictor reads, and a target that their features or kernels add up to."""
    names = columns(predictor.families(target))
    rng = np.random.default_rng(seed)
    features = rng.lognormal(12, 2, (ROWS, len(names)))
    for family in predictor.families(target):
        if family in OF_OPTIONS:
            of_family = [name.partition(".")[0] == family for name in names]
            told = SubnetOptions(_drawn_subnets(np.random.default_rng(seed)))
            features[:, of_family] = OF_OPTIONS[family].values(told)
    rates = rng.uniform(0.5, 2, len(names)) * 1e-9
    measured = (1e-3 + features @ rates) * rng.normal(1, 0.02, ROWS)
    groups = tuple(f"group {row % GROUPS}" for row in range(ROWS))
    samples = Samples(tuple(map(str, range(ROWS))), names, features, measured, groups, target)
    return samples if predictor.level == "network" else _of_kernels(samples, rng)


def _drawn_subnets(rng: np.random.Generator) -> Options:
    """Return the options of subnetworks at random, on a GPU of two."""
    columns: dict[str, Sequence[Any]] = {
        "model_name": ["ofa_mobilenet_v3"] * ROWS,
        "model.subnet": [draw("ofa", rng) for _ in range(ROWS)],
        "model.width": [1.2] * ROWS,
        "dataset.size": rng.choice([160, 192, 224], ROWS).tolist(),
        "batch": [1] * ROWS,
        "hardware_name": ["a GPU"] * ROWS,
        **{f"hardware.{name}": rng.choice([1000.0, 4000.0], ROWS).tolist() for name in DEVICE},
    }
    return lambda name: columns.get(name, [None] * ROWS)


def _of_kernels(samples: Samples, rng: np.random.Generator) -> Samples:
    """Return the rows with kernels, whose times add up to the rows' targets."""
    points = np.repeat(np.arange(len(samples)), rng.integers(1, 9, len(samples)))
    features = rng.lognormal(6, 2, (len(points), len(COLUMNS)))
    costs = features[:, [COLUMNS.index(name) for name in ("macs", "values", "weights")]]
    seconds = (1e-6 + costs.sum(axis=1) * 1e-9) * rng.normal(1, 0.02, len(points))
    kinds = rng.choice(["conv", "conv1x1", "Add", "MaxPool"], len(points))
    kernels = Kernels(points, kinds, COLUMNS, features, seconds)
    target = np.asarray(np.bincount(points, seconds), dtype=np.float64)
    return replace(samples, target=target, kernels=kernels)


def _predicts(predictor: Predictor, target: str) -> bool:
    try:
        predictor.families(target)
    except InputError:
        return False
    return True


def _check_on(predictor: Predictor, samples: Samples, root: Path) -> None:
    fitted, again = (_fit(predictor, samples, root / name) for name in ("first", "second"))
    predicted = _checked(fitted, samples)
    assert np.array_equal(predicted, again.predict(samples)), "one seed gives two predictors"
    alone = np.concatenate([fitted.predict(samples.take([row])) for row in range(len(samples))])
    # Products of matrices of other sizes round otherwise, in single precision.
    assert np.allclose(alone, predicted, rtol=1e-5, atol=0), (
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
