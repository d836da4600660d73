"""Points of a study predicted without building or measuring them."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.errors import InputError
from dlas.stack import Layer
from dlas.sweep.rows.predictions import bound_names
from dlas.sweep.study.point import Choice
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_row, training_rows

LEVELS = (0.0, 0.3, 0.6)
STUDY: dict[str, Any] = {
    "name": "ahead",
    "axes": {
        "task": ["training"],
        "dataset": ["digits"],
        "model": [{"name": "cifar_mobilenet_v2", "width": 0.25, "recipe": "none"}],
        "compiler": ["torch_eager"],
        "hardware": [{"name": "local_cpu", "threads": 2}],
        "batch": [2, 8, 16],
    },
}


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    """What this machine says of itself."""
    described: dict[str, Any] = (
        Choice.checked("hardware", "local_cpu", {"threads": 2}).make("hardware").describe()
    )
    return described


@pytest.fixture(scope="module")
def fitted(here: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted")
    dlas.fit(
        "additive",
        write(folder / "rows", list(training_rows(device=here))),
        target="latency_s",
        to=folder / "p",
        hold_out="model",
    )
    return folder / "p"


@pytest.fixture(scope="module")
def predicted(fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "ahead"
    view = dlas.predict(fitted, STUDY, out=out, cache=out.parent / "cache", steps="inline", progress="silent")
    assert "3 points of 3 points" in str(view)
    return out


def test_predictions_have_a_file_of_their_own(predicted: Path) -> None:
    assert sorted(path.name for path in predicted.iterdir()) == ["predictions.jsonl"]
    lines = [json.loads(line) for line in (predicted / "predictions.jsonl").read_text().splitlines()]
    assert [line["batch"] for line in lines] == [2, 8, 16]
    for line in lines:
        assert line["predictions"]["latency_s"]["value"] > 0
        assert line["predictions"]["latency_s"]["low"] is None
        assert not line["in_range"] and "outside the fitted range" in line["doubt"]


def test_read_gives_them_a_status_of_their_own(predicted: Path, tmp_path: Path) -> None:
    found = dlas.read(predicted, predictions=True)
    assert found["status"].eq("predicted").all()
    assert found["latency_s"].is_monotonic_increasing and found["latency_s"].gt(0).all()
    assert found["origin"].str.len().eq(64).all()
    with pytest.raises(InputError):
        dlas.read(predicted)
    measured = write(tmp_path / "rows", [training_row("wide", level, 8) for level in LEVELS])
    both = dlas.read([measured, predicted], predictions=True)
    assert both["status"].tolist() == ["ok"] * 3 + ["predicted"] * 3
    assert both["origin"].tolist()[:3] == ["measured"] * 3
    assert np.isfinite(both["latency_s"]).all()


def test_no_analysis_takes_them_for_measured(predicted: Path, tmp_path: Path) -> None:
    from dlas.analysis.matching import timed

    measured = write(tmp_path / "rows", [training_row("wide", level, 8) for level in LEVELS])
    both = dlas.read([measured, predicted], predictions=True)
    assert timed(both).sum() == 3
    compared = dlas.compare(both, "compression").frame
    assert not compared["matched"][compared["status"] == "predicted"].any()


@pytest.mark.slow
@pytest.mark.usefixtures("same_threads_afterwards")
def test_a_points_features_are_those_of_its_row(fitted: Path, predicted: Path, tmp_path: Path) -> None:
    one = {**STUDY, "axes": {**STUDY["axes"], "batch": [8]}, "measure": {"repeats": 1, "layer_repeats": 1}}
    options: dict[str, Any] = {"in_process": True, "progress": "silent"}
    dlas.run(one, out=tmp_path / "rows", cache=predicted.parent / "cache", **options)
    (of_row,) = dlas.predict(fitted, tmp_path / "rows").frame["latency_s"]
    ahead = dlas.read(predicted, predictions=True).set_index("batch")["latency_s"]
    assert of_row == pytest.approx(ahead[8], rel=1e-9)


def test_a_missing_folder_is_told_also_where_predictions_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no results\.jsonl"):
        dlas.read(tmp_path / "nowhere", predictions=True)


def test_a_filter_may_be_one_text(fitted: Path, predicted: Path) -> None:
    options: dict[str, Any] = {"cache": predicted.parent / "cache", "steps": "inline", "progress": "silent"}
    assert dlas.predict(fitted, STUDY, where="batch=8", **options).frame["batch"].tolist() == [8]


def test_bounds_need_intervals_and_the_predicted_quantity(fitted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs intervals"):
        dlas.predict(fitted, STUDY, within={"latency_s": 0.05}, cache=tmp_path)
    with pytest.raises(InputError, match="what `anyway=True` predicts has none"):
        dlas.predict(fitted, STUDY, within={"latency_s": 0.05}, anyway=True, cache=tmp_path)
    with pytest.raises(InputError, match="this predictor predicts latency_s"):
        dlas.predict(fitted, STUDY, within={"energy_j": 1}, cache=tmp_path)


def test_a_task_that_was_never_fitted_is_refused(fitted: Path, predicted: Path, tmp_path: Path) -> None:
    inference = {**STUDY, "axes": {**STUDY["axes"], "task": ["inference"], "batch": [8]}}
    options: dict[str, Any] = {"cache": predicted.parent / "cache", "steps": "inline", "progress": "silent"}
    with pytest.raises(InputError, match=r"task 'inference' was never fitted \(fitted: training\)"):
        dlas.predict(fitted, inference, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    found = dlas.predict(fitted, inference, anyway=True, **options).frame
    assert found["doubt"].str.contains("another setting").all()


@pytest.fixture(scope="module")
def of_kernels(here: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A predictor of kernels of inference; beside it are its rows."""
    folder = tmp_path_factory.mktemp("kernels")
    rows = [
        replace(row, task="inference", layers=[timed(layer) for layer in row.layers])
        for row in training_rows(device=here)
    ]
    dlas.fit(
        "boosted_kernels",
        write(folder / "rows", rows),
        target="latency_s",
        to=folder / "p",
        hold_out="compression.level",
        options={"rounds": 20},
    )
    return folder / "p"


def timed(layer: Layer) -> Layer:
    values = sum(math.prod(shape) for shape in [*layer["inputs"], layer["output"]])
    return {**layer, "latency_s": 1e-6 + 1e-11 * (layer.get("macs") or 0) + 1e-10 * values}


def test_kernels_are_scored_by_kind(of_kernels: Path) -> None:
    rows = of_kernels.parent / "rows"
    view = dlas.evaluate(
        rows, predictors=["boosted_kernels"], target="latency_s", hold_out="compression.level"
    )
    assert "boosted_kernels: kernels of what was held out" in str(view)
    assert {"conv", "Gemm", "Relu"} <= set(str(view).replace("\n", " ").split())
    measured = dlas.read(rows)["latency_s"].to_numpy(dtype=float)
    errors = np.abs(dlas.predict(of_kernels, rows).frame["latency_s"].to_numpy(dtype=float) / measured - 1)
    assert errors.mean() < 0.5


def test_kernels_of_a_study_are_those_that_its_compiler_tells(of_kernels: Path, predicted: Path) -> None:
    study = {**STUDY, "axes": {**STUDY["axes"], "task": ["inference"], "batch": [2]}}
    options: dict[str, Any] = {"cache": predicted.parent / "cache", "steps": "inline", "progress": "silent"}
    with pytest.raises(InputError, match=r"no point can be predicted: over 10% of it are kernels"):
        dlas.predict(of_kernels, study, **options)
    (found,) = dlas.predict(of_kernels, study, anyway=True, **options).frame.to_dict("records")
    assert found["latency_s"] > 0 and np.isnan(found[bound_names("latency_s")[0]])
    assert "kernels of kinds never fitted" in found["doubt"]


def test_only_times_are_sums_of_kernels(of_kernels: Path, tmp_path: Path) -> None:
    rows = of_kernels.parent / "rows"
    with pytest.raises(InputError, match="peak_memory_bytes is none"):
        dlas.fit("boosted_kernels", rows, target="peak_memory_bytes", to=tmp_path / "p", hold_out="model")
    steps = [training_row("wide", level, batch) for level in LEVELS for batch in range(2, 9)]
    untimed = [replace(row, task="inference") for row in steps[:5]]
    with pytest.raises(InputError, match="5 without times of layers, 16 of training"):
        dlas.fit(
            "boosted_kernels",
            write(tmp_path / "rows", [*untimed, *steps[5:]]),
            target="latency_s",
            to=tmp_path / "p",
            hold_out="batch",
        )
