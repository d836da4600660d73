"""Every predictor keeps its contract, and the contract finds what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dlas.predictors.additive import Additive
from dlas.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.study import parts
from dlas.testing import check_predictor

FEWER = {"extra_trees": {"trees": 20}, "random_forest": {"trees": 20}}


@pytest.mark.parametrize("name", parts.names("predictor"))
def test_predictor_keeps_its_contract(name: str) -> None:
    check_predictor(parts.make("predictor", name, FEWER.get(name, {})))


@dataclass(frozen=True)
class Relative(Fitted):
    """Divides by the largest of the rows that it predicts together."""

    inner: Fitted

    def predict(self, samples: Samples) -> npt.NDArray[np.float64]:
        found = self.inner.predict(samples)
        return np.asarray(found / found.max())

    def save(self, folder: Path) -> None:
        self.inner.save(folder)


@dataclass(frozen=True)
class Together(Additive):
    """A row's prediction depends on the others."""

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        return Relative(super().fit(samples, workspace))


@dataclass(frozen=True)
class Forgetful(Additive):
    """Stores other rates than those it predicts with."""

    def load(self, folder: Path) -> Fitted:
        rates = Rates.read(folder)
        return Rates(rates.rates * 2, rates.constant, rates.floor, rates.share)


@dataclass(frozen=True)
class Negative(Additive):
    """Predicts negative times."""

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        return Rates(np.zeros(len(samples.columns)), -1.0, -1.0, np.zeros(len(samples.columns)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Together(), "depends on the rows beside it"),
        (Forgetful(), "loaded, it predicts otherwise"),
        (Negative(), "no positive number"),
    ],
)
def test_the_contract_finds_what_is_wrong(wrong: Predictor, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_predictor(wrong)
