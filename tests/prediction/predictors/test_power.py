"""Energy is the time of kernels times the power of their kind, which whole networks tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dlas
from dlas.errors import InputError
from dlas.prediction.learning.features.devices import device_features, facts_of
from dlas.prediction.learning.points import read_points
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.prediction.predictors.fitted.kernel_index import INDEX
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.prediction.predictors.fitted.power import Power
from dlas.stack import Kernels, Samples, Workspace
from tests.fixtures.kernel_rows import WATTS, board, kernel_rows
from tests.fixtures.rows import write

KIND_OF = {"conv": "Conv", "Relu": "Relu", "Gemm": "Gemm"}
PART = BoostedKernels(rounds=20)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metered")
    return write(folder, list(kernel_rows(board("Metered"), metered=True)))


@pytest.fixture(scope="module")
def samples(rows: Path) -> Samples:
    points = read_points([rows], "energy_j", kernels=True)
    return points.samples(PART, "energy_j", list(points.frame["model"]))


def fitted_to(samples: Samples) -> KernelSum:
    found = PART.fit(samples, Workspace(0, Path(), lambda line: None))
    assert isinstance(found, KernelSum)
    return found


@pytest.fixture(scope="module")
def fitted(samples: Samples) -> KernelSum:
    return fitted_to(samples)


def test_powers_of_kinds_follow_from_the_energy_of_networks(fitted: KernelSum) -> None:
    assert fitted.power is not None and set(fitted.power.watts) == set(KIND_OF)
    for kind, operator in KIND_OF.items():
        assert fitted.power.watts[kind] == pytest.approx(WATTS[operator], rel=0.05)
    assert min(WATTS.values()) < fitted.power.mean < max(WATTS.values())


def test_networks_never_fitted_use_what_their_kernels_use(samples: Samples) -> None:
    away = np.array(samples.groups) == "deep"
    found, tried = fitted_to(samples.take(np.flatnonzero(~away))), samples.take(np.flatnonzero(away))
    errors = np.abs(found.predict(tried) / tried.target - 1)
    assert errors.mean() < 0.1
    assert tried.kernels is not None and found.power is not None
    joules = found.of_kernels(tried.kernels) * found.power.of(tried.kernels.with_columns(found.columns))
    by_hand = np.bincount(tried.kernels.points, found.factor * joules + found.overhead)
    assert np.allclose(found.predict(tried), by_hand, rtol=1e-12)


def test_a_kind_that_takes_little_time_has_nearly_the_mean_power(samples: Samples) -> None:
    kernels = samples.kernels
    assert kernels is not None
    whole = np.bincount(kernels.points, kernels.seconds)
    least = int(np.argmin(kernels.seconds / whole[kernels.points]))
    kinds = kernels.kinds.astype("<U12")
    kinds[least] = "Rare"
    power = Power.fitted(replace(kernels, kinds=kinds), samples.target)
    assert power.watts["Rare"] == pytest.approx(power.mean, rel=0.05)
    rare_and_never = replace(kernels.take(np.arange(2)), kinds=np.array(["Rare", "Never"]))
    assert power.of(rare_and_never).tolist() == [power.watts["Rare"], power.mean]


def test_a_predictor_of_energy_is_evaluated_stored_and_read(rows: Path, tmp_path: Path) -> None:
    options = {"rounds": 20}
    view = dlas.fit(
        "boosted_kernels", rows, target="energy_j", to=tmp_path / "p", hold_out="model", options=options
    )
    overall = view.frame[view.frame["held_out"] == ""].set_index("predictor")
    assert overall["mape"]["boosted_kernels"] < 0.15 and overall["mape"].idxmin() == "boosted_kernels"
    found = dlas.predictor(tmp_path / "p").predict(rows)
    measured = dlas.read(rows)["energy_j"].to_numpy(dtype=float)
    assert np.abs(found["energy_j"].to_numpy() / measured - 1).mean() < 0.05


def test_a_stored_power_is_the_same_and_is_checked(
    fitted: KernelSum, samples: Samples, tmp_path: Path
) -> None:
    fitted.save(tmp_path)
    assert np.array_equal(KernelSum.read(tmp_path).predict(samples), fitted.predict(samples))
    content = json.loads((tmp_path / INDEX).read_text())
    (tmp_path / INDEX).write_text(json.dumps({**content, "kinds": [*content["kinds"], "More"]}))
    with pytest.raises(InputError, match="arrays of other shapes"):
        KernelSum.read(tmp_path)


def test_times_have_no_power_and_older_folders_do_not_say_so(samples: Samples, tmp_path: Path) -> None:
    assert samples.kernels is not None
    latency = np.bincount(samples.kernels.points, samples.kernels.seconds).astype(np.float64)
    found = fitted_to(replace(samples, target=latency, quantity="latency_s"))
    assert found.power is None and np.abs(found.predict(samples) / latency - 1).mean() < 0.05
    found.save(tmp_path)
    content = json.loads((tmp_path / INDEX).read_text())
    del content["power"]
    (tmp_path / INDEX).write_text(json.dumps(content))
    assert np.array_equal(KernelSum.read(tmp_path).predict(samples), found.predict(samples))


def test_rows_without_energy_are_refused_with_the_reason(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows", list(kernel_rows(board("Unmetered"))))
    with pytest.raises(InputError, match=r"no row has energy_j: 45 rows without energy_j.*no meter"):
        dlas.fit("boosted_kernels", folder, target="energy_j", to=tmp_path / "p")
    assert not (tmp_path / "p").exists()


def with_energies(kernels: Kernels) -> Kernels:
    """Return kernels whose power follows from what each computes, within a kind by a factor of three."""
    busy = np.minimum(kernels.column("macs") / np.maximum(kernels.column("values"), 1.0), 50.0) / 50.0
    return replace(kernels, energies=kernels.seconds * (5.0 + 10.0 * busy))


def power_error(fitted: KernelSum, tried: Samples) -> float:
    assert tried.kernels is not None and fitted.power is not None
    kernels = tried.kernels.with_columns(fitted.columns)
    return float(np.abs(fitted.power.of(kernels) * kernels.seconds / kernels.joules - 1).mean())


def test_kernels_that_tell_their_energy_have_their_power_by_trees(samples: Samples, tmp_path: Path) -> None:
    assert samples.kernels is not None
    kernels = with_energies(samples.kernels)
    joules = np.asarray(np.bincount(kernels.points, kernels.joules), dtype=np.float64)
    by_kernels = replace(samples, kernels=kernels, target=joules)
    by_networks = replace(by_kernels, kernels=replace(kernels, energies=None))
    places = np.arange(len(samples))
    fitted, tried = by_kernels.take(places[places % 3 > 0]), by_kernels.take(places[places % 3 == 0])
    found = fitted_to(fitted)
    assert found.power is not None and found.power.boosters
    alone = fitted_to(by_networks.take(places[places % 3 > 0]))
    assert alone.power is not None and not alone.power.boosters
    assert power_error(found, tried) < power_error(alone, tried)
    found.save(tmp_path)
    assert np.allclose(KernelSum.read(tmp_path).predict(tried), found.predict(tried), rtol=1e-6)
    content = json.loads((tmp_path / INDEX).read_text())
    (tmp_path / INDEX).write_text(json.dumps({**content, "powered": [99]}))
    with pytest.raises(InputError, match="names no kinds of kernels"):
        KernelSum.read(tmp_path)


def test_the_clocks_of_a_device_are_features_and_older_rows_have_none() -> None:
    told = facts_of({"cpu_hz": 1e9, "gpu_hz": 2e9, "memory_hz": 3e8, "threads": 1, "physical_cores": 4})
    assert told == {"cpu_hz": 1e9, "gpu_hz": 2e9, "memory_hz": 3e8, "physical_cores": 4.0}
    frame = pd.DataFrame({"threads": [1, 1], "compiler": ["a", "a"], "algorithm": ["b", "b"]})
    names, values = device_features(frame, [told, facts_of({"clock_max_hz": 1e9})])
    assert values[:, names.index("device.gpu_hz")].tolist() == [2e9, 0.0]
