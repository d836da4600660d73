"""Features that a table from elsewhere tells of its points: of any space, on any device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dlas
from dlas.errors import InputError
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.extra_trees import ExtraTrees
from dlas.prediction.predictors.mixture import Mixture
from dlas.stack import Predictor, Samples, Workspace
from tests.fixtures.package import ROOT

CELLS = ROOT / "tests/data/nasbench201.csv.xz"
TARGET = "latency_s"
OTHERS = ("titan_rtx_256", "gold_6226", "fpga", "eyeriss")
"""Devices of which ten cells are known; phones of the same table are among those that are known whole."""
NAMES = {"dataset_name": "pictures", "model_name": "towers", "compiler_name": "theirs"}


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells")
    dlas.import_rows(CELLS, folder / "rows")
    return folder / "rows"


def bases_of(rows: Path, folder: Path, without: tuple[str, ...]) -> str:
    """Return the folder of a sum for each of the other devices."""
    known = " and ".join(f"machine != {name!r}" for name in without)
    asked: dict[str, Any] = {"target": TARGET, "hold_out": "model/2", "where": [known]}
    dlas.fit("additive", rows, to=folder / "bases", options={"costs": "own"}, **asked)
    return str(folder / "bases")


def of(points: Points, predictor: Predictor, machine: str) -> Samples:
    own = points.take(np.flatnonzero(points.frame["machine"].eq(machine)))
    samples = own.samples(predictor, TARGET, own.frame["id"].tolist())
    return samples.take(np.random.default_rng(0).permutation(len(samples)))


def error_and_rank(predictor: Predictor, samples: Samples, fitted: int, folder: Path) -> tuple[float, float]:
    found = predictor.fit(samples.take(range(fitted)), Workspace(0, folder, lambda line: None))
    rest = samples.take(range(fitted, len(samples)))
    told = found.predict(rest)
    return float(np.median(np.abs(told / rest.target - 1))), float(
        stats.spearmanr(told, rest.target).statistic
    )


@pytest.mark.slow
def test_ten_cells_tell_the_others_on_devices_of_other_kinds(cells: Path, tmp_path: Path) -> None:
    frame = dlas.read(cells)
    assert len([name for name in map(str, frame) if name.startswith("feature.")]) == 11
    points = read_points([cells], TARGET)
    predictor = Mixture(bases_of(cells, tmp_path, OTHERS))
    found = [error_and_rank(predictor, of(points, predictor, name), 10, tmp_path) for name in OTHERS]
    errors, ranks = np.array(found).T
    assert ranks.min() > 0.95 and errors.max() < 0.06
    asked: dict[str, Any] = {"target": TARGET, "hold_out": "model/2", "where": ["machine == 'fpga'"]}
    dlas.fit("mixture", cells, to=tmp_path / "mixed", options={"base": predictor.base}, **asked)
    measured = frame[frame["machine"] == "fpga"]
    told = dlas.predictor(tmp_path / "mixed").predict(measured)
    assert np.median(np.abs(told[TARGET].to_numpy() / measured[TARGET].to_numpy() - 1)) < 0.02


def towers(count: int, unit: float, speeds: dict[str, tuple[float, float, float]]) -> pd.DataFrame:
    """Return latencies of a made-up space, in which a tower has a height and a width, on some machines."""
    draw = np.random.default_rng(1)
    height, width = draw.integers(1, 20, count), draw.uniform(10, 200, count)
    tables = []
    for name, (one, other, always) in speeds.items():
        seconds = one * height + other * height * width + always
        noise = draw.lognormal(0, 0.01, count)
        told = {"model.tower": range(count), "machine": name, "hardware_name": name}
        tables.append(
            pd.DataFrame({**NAMES, **told, "feature.floors": height, "feature.stones": height * width})
        )
        tables[-1]["feature.ground"] = 1
        tables[-1][{1e3: "latency_ms", 1e6: "latency_us"}[unit]] = seconds * unit * noise
    return pd.concat(tables)


SPEEDS = {
    "a": (1e-3, 1e-5, 1e-2),
    "b": (3e-3, 2e-6, 0.0),
    "c": (1e-4, 5e-5, 3e-2),
    "d": (2e-3, 3e-5, 1e-3),
    "e": (5e-3, 1e-6, 2e-2),
    "f": (1e-3, 1e-4, 0.0),
}


def test_another_space_with_other_units_and_missing_cells_is_predicted(tmp_path: Path) -> None:
    table = towers(120, 1e6, SPEEDS)
    table["feature.stones"] = table["feature.stones"].mask(table["model.tower"] % 11 == 0)
    table.to_csv(tmp_path / "towers.csv", index=False)
    dlas.import_rows(tmp_path / "towers.csv", tmp_path / "rows")
    points = read_points([tmp_path / "rows"], TARGET)
    assert points.left_out == {"without all features": 11 * len(SPEEDS)}
    predictor = Mixture(bases_of(tmp_path / "rows", tmp_path, ("f",)))
    error, rank = error_and_rank(predictor, of(points, predictor, "f"), 10, tmp_path)
    assert error < 0.03 and rank > 0.99
    trees = ExtraTrees(reads="own")
    error, rank = error_and_rank(trees, of(points, trees, "f"), 80, tmp_path)
    assert error < 0.2 and rank > 0.95


def test_a_device_that_says_nothing_of_the_rows_counts_for_nothing(tmp_path: Path) -> None:
    towers(40, 1e3, {"a": (1e-3, 0, 0), "b": (0, 1e-5, 0)}).to_csv(tmp_path / "known.csv", index=False)
    table = towers(40, 1e3, {"f": (2e-3, 0, 0)}).assign(**{"feature.stones": 0})
    table.to_csv(tmp_path / "mine.csv", index=False)
    for name in ("known", "mine"):
        dlas.import_rows(tmp_path / f"{name}.csv", tmp_path / name)
    predictor = Mixture(bases_of(tmp_path / "known", tmp_path, ("f",)))
    points = read_points([tmp_path / "mine"], TARGET)
    error, _ = error_and_rank(predictor, of(points, predictor, "f"), 10, tmp_path)
    assert error < 0.03


def fitted(folder: Path, table: pd.DataFrame, part: str = "additive", **options: Any) -> None:
    """Import a table, and fit a predictor to it."""
    table.to_csv(folder / "table.csv", index=False)
    dlas.import_rows(folder / "table.csv", folder / "rows")
    dlas.fit(part, folder / "rows", to=folder / "fit", target=TARGET, hold_out="model/2", options=options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"feature.floors": "high"}, "line 2, column 'feature.floors': 'high' is not a number"),
        ({"latency_ms": 0}, "line 2, column 'latency_ms': '0' is not positive"),
        ({"feature.floors": -1}, "feature.floors is negative"),
        ({"feature.floors": None, "feature.stones": None, "feature.ground": None}, "without operators"),
    ],
    ids=["text", "zero", "negative", "none"],
)
def test_a_bad_table_is_one_message(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = towers(40, 1e3, {"a": SPEEDS["a"]}).assign(**changed)
    with pytest.raises(InputError, match=message):
        fitted(tmp_path, table, costs="own")


def test_two_rows_are_too_few_and_other_features_are_refused(tmp_path: Path) -> None:
    for name in ("two", "known", "others", "network"):
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="2 usable rows"):
        fitted(tmp_path / "two", towers(2, 1e3, {"a": SPEEDS["a"]}), costs="own")
    table = towers(40, 1e3, {"a": SPEEDS["a"]})
    fitted(tmp_path / "known", table, costs="own")
    with pytest.raises(InputError, match=r"sums other costs: it has none of feature\.bricks"):
        fitted(
            *(tmp_path / "others", table.rename(columns={"feature.stones": "feature.bricks"}), "mixture"),
            base=str(tmp_path / "known" / "fit"),
        )
    with pytest.raises(InputError, match=r"only features of its own: additive\(costs='own'\)"):
        fitted(tmp_path / "network", table)


def test_predictors_that_sum_additive_read_own_features() -> None:
    assert Additive("own").families(TARGET) == ExtraTrees(reads="own").families(TARGET) == ("feature",)
