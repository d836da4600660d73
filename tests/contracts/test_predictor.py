"""Every predictor keeps its contract, and the contract finds what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import dlas
from dlas.networks.subnets.shapes import ofa
from dlas.networks.subnets.tables import write_tables
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.sweep.study import parts
from dlas.testing import check_predictor
from tests.fixtures.package import ROOT

FEWER: dict[str, dict[str, Any]] = {
    "extra_trees": {"trees": 20},
    "random_forest": {"trees": 20},
    "subnet_mlp": {"epochs": 4, "settings": 9},
    "fine_tuned": {"base": "base_mlp", "epochs": 4},
    "mixture": {"base": "base_sums"},
    "lookup_table": {"table": "tables"},
}


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with predictors that others are made from, and a table of blocks."""
    folder = tmp_path_factory.mktemp("bases")
    shapes = ofa(1.2)
    sizes = {size: [*shapes.keys(size), *shapes.fixed_keys(size)] for size in (160, 224)}
    write_tables(folder / "tables", {size: dict.fromkeys(keys, 1e-3) for size, keys in sizes.items()}, {})
    table = pd.read_csv(ROOT / "tests/data/ofa_note10.csv.xz").head(40)
    table.to_csv(folder / "rows.csv", index=False)
    dlas.import_rows(folder / "rows.csv", folder / "rows")
    given: dict[str, dict[str, Any]] = {
        "subnet_mlp": {"epochs": 2, "settings": 1},
        "additive": {"costs": "stage"},
    }
    for part, to in (("subnet_mlp", "base_mlp"), ("additive", "base_sums")):
        asked: dict[str, Any] = {"target": "latency_s", "hold_out": "model/2", "options": given[part]}
        dlas.fit(part, folder / "rows", to=folder / to, **asked)
    return folder


@pytest.mark.parametrize("name", parts.names("predictor"))
def test_predictor_keeps_its_contract(name: str, bases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bases)
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
