"""Predictors fitted to rows: tables, folders, predictions, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.errors import InputError
from dlas.prediction.learning import stored
from dlas.prediction.predictors.fitted.folders import sums
from tests.fixtures.rows import failing, write
from tests.fixtures.training_rows import BATCHES, LEVELS, WIDTHS, training_row, training_rows

TARGET = "latency_s"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rows"), list(training_rows()))


@pytest.fixture(scope="module")
def fitted(rows: Path) -> Path:
    folder = rows / "additive"
    dlas.fit("additive", rows, target=TARGET, to=folder, hold_out="compression.level")
    return folder


def test_the_table_has_the_predictor_and_the_baselines(rows: Path, tmp_path: Path) -> None:
    view = dlas.fit("additive", rows, target=TARGET, to=tmp_path / "p", hold_out="compression.level")
    overall = view.frame[view.frame["held_out"] == ""].set_index("predictor")
    assert list(overall.index) == ["additive", "mean", "flops", "nearest"]
    assert overall["rows"].eq(len(WIDTHS) * len(LEVELS) * len(BATCHES)).all()
    assert overall["mape"]["additive"] < 0.03
    assert overall["mape"].idxmin() == "additive"
    for text in ("mean error", "noise floor", "no interval", "largest errors"):
        assert text in str(view)


def test_machines_are_held_out_of_one_predictor(tmp_path: Path) -> None:
    kept = {name: list(training_rows(device={"cpu": name, "threads": 2})) for name in ("Slow", "Fast")}
    folders = [write(tmp_path / name, own) for name, own in kept.items()]
    view = dlas.evaluate(folders, predictors=["additive"], target=TARGET, hold_out="machine")
    frame = view.frame[view.frame["predictor"] == "additive"].set_index("held_out")
    count = len(kept["Slow"])
    assert frame["rows"].tolist() == [2 * count, count, count]
    assert frame["mape"].max() < 0.03 and "2 machines" in str(view)
    with pytest.raises(InputError, match="`dlas evaluate` tells how wrong"):
        dlas.fit("additive", folders, target=TARGET, to=tmp_path / "p", hold_out="machine")


@pytest.mark.parametrize(
    "part",
    ["additive", "corrected", "extra_trees", "random_forest", "linear", "flops", "nearest", "mean"],
)
@pytest.mark.parametrize("target", [TARGET, "peak_memory_bytes"])
def test_a_stored_predictor_says_what_it_said_before(
    part: str, target: str, rows: Path, tmp_path: Path
) -> None:
    options = {"trees": 10} if part in ("corrected", "extra_trees", "random_forest") else {}
    dlas.fit(part, rows, target=target, to=tmp_path / "p", hold_out="batch", options=options)
    found = dlas.predictor(tmp_path / "p").predict(rows)
    again = dlas.predictor(tmp_path / "p").predict(dlas.read(rows))
    assert np.array_equal(found[target], again[target])
    measured = dlas.read(rows)[target].to_numpy(dtype=float)
    error = np.abs(found[target].to_numpy() - measured) / measured
    assert np.isfinite(found[target]).all() and (found[target] > 0).all()
    if part not in ("mean", "flops", "nearest"):
        assert error.mean() < 0.15
    assert found["in_range"].all()


def test_levels_of_a_model_give_no_interval_and_nine_models_do(tmp_path: Path) -> None:
    levels = [round(0.08 * place, 2) for place in range(11)]
    rng = np.random.default_rng(0)
    many = [
        training_row("wide", level, batch, float(rng.normal(0, 0.02)))
        for level in levels
        for batch in (1, 2, 4, 8)
    ]
    folder = write(tmp_path / "rows", many)
    view = dlas.fit("additive", folder, target=TARGET, to=tmp_path / "p", hold_out="compression.level")
    overall = view.frame[view.frame["held_out"] == ""].set_index("predictor").loc["additive"]
    assert 0.7 <= overall["coverage"] <= 1 and overall["width"] > 0
    found = dlas.predictor(tmp_path / "p").predict(folder)
    assert (found["latency_low_s"] < found[TARGET]).all() and (found[TARGET] < found["latency_high_s"]).all()


def test_rows_of_other_settings_are_fitted_by_themselves(tmp_path: Path) -> None:
    slow: dict[str, Any] = {"device": {"cpu": "Slow 1", "threads": 1, "physical_cores": 1}}
    fast = list(training_rows())
    other = [row for row in training_rows(seed=1, **slow)]
    for row in other:
        row.latency_s = [3 * seconds for seconds in row.latency_s]
    folders = [write(tmp_path / "fast", fast), write(tmp_path / "slow", other)]
    view = dlas.fit("additive", folders, target=TARGET, to=tmp_path / "p", hold_out="model")
    assert view.frame["setting"].nunique() == 2
    found = dlas.predictor(tmp_path / "p").predict(folders)
    half = len(fast)
    ratio = found[TARGET][half:].to_numpy() / found[TARGET][:half].to_numpy()
    assert np.median(ratio) == pytest.approx(3, rel=0.05)


def test_values_outside_the_fitted_ranges_are_marked(fitted: Path, tmp_path: Path) -> None:
    strange = write(tmp_path / "rows", [training_row("wide", 0.0, 512), training_row("wide", 0.4, 8)])
    found = dlas.predictor(fitted).predict(strange)
    assert found["in_range"].tolist() == [False, True]
    assert "batch 512 is outside 2 to 32" in found["doubt"][0]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"compiler": "torch_compile"}, "compiler 'torch_compile' was never fitted"),
        ({"task": "inference"}, "task 'inference' was never fitted"),
        (
            {"device": {"cpu": "Strange", "threads": 2}},
            r"machine 'Strange.*' was never fitted \(fitted: Imaginary 9000.*\)",
        ),
    ],
)
def test_settings_that_were_never_fitted_are_refused(
    changed: dict[str, Any], message: str, fitted: Path, tmp_path: Path
) -> None:
    plain = training_row("wide", 0.4, 8)
    given: dict[str, Any] = {
        name: {"name": value} if name == "compiler" else value for name, value in changed.items()
    }
    strange = write(tmp_path / "rows", [dataclasses.replace(plain, **given)])
    with pytest.raises(InputError, match=message):
        dlas.predictor(fitted).predict(strange)
    found = dlas.predictor(fitted).predict(strange, anyway=True)
    assert found[TARGET].gt(0).all() and found["latency_low_s"].isna().all()
    assert "another setting" in found["doubt"][0]


def test_too_few_rows_are_told_with_the_reasons(tmp_path: Path) -> None:
    known = [training_row("wide", level, batch) for level in LEVELS for batch in BATCHES]
    without = [training_row("deep", level, 8, peak_memory_bytes=None) for level in LEVELS]
    folder = write(tmp_path / "rows", [*known, *without, failing(batch=3), failing("timeout", batch=5)])
    with pytest.raises(
        InputError, match=r"15 usable rows.*at least 20.*22 rows: 5 without peak_memory_bytes, 2 not ok"
    ):
        dlas.fit("additive", folder, target="peak_memory_bytes", to=tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_a_target_that_no_row_has_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without energy_j"):
        dlas.fit("additive", rows, target="energy_j", to=tmp_path / "p")
    with pytest.raises(InputError, match="`target='watts'` is no column"):
        dlas.fit("additive", rows, target="watts", to=tmp_path / "p")


def test_one_network_at_two_levels_cannot_be_split(tmp_path: Path) -> None:
    twins = [
        training_row("narrow", level, batch)
        for level in (0.0, 0.01, 0.02, 0.4, 0.8)
        for batch in (1, 2, 3, 4, 6, 8, 12, 16)
    ]
    folder = write(tmp_path / "rows", twins)
    with pytest.raises(InputError, match="have the same network"):
        dlas.fit("additive", folder, target=TARGET, to=tmp_path / "p", hold_out="compression.level")
    dlas.fit("additive", folder, target=TARGET, to=tmp_path / "p", hold_out="network")


def test_the_noise_floor_comes_from_points_measured_twice(rows: Path, tmp_path: Path) -> None:
    again = write(tmp_path / "again", list(training_rows(seed=5)))
    view = dlas.evaluate([rows, again], predictors=["additive"], target=TARGET, hold_out="model")
    told = re.search(r"noise floor: ([\d.]+)%", str(view))
    assert (
        told and 0.5 < float(told[1]) < 1.2
    )  # of times with an error of 1 %: 2 / sqrt(pi) / sqrt(2) = 0.8 %
    assert view.frame["rows"].max() == len(WIDTHS) * len(LEVELS) * len(BATCHES)


def test_an_existing_folder_is_not_overwritten(rows: Path, fitted: Path) -> None:
    with pytest.raises(InputError, match="exists already"):
        dlas.fit("mean", rows, target=TARGET, to=fitted)


def test_a_predictor_is_written_beside_rows_and_files_where_that_is_asked_for(
    rows: Path, fitted: Path, tmp_path: Path
) -> None:
    known = stored.read(fitted)
    folder = tmp_path / "mine"
    kept = write(folder / "rows", list(training_rows())[:3])
    (folder / "0").mkdir()
    (folder / "0" / "left.partial").touch()
    with pytest.raises(InputError, match="exists already"):
        stored.write(folder, known.record, list(known.fitted.values()))
    stored.write(folder, known.record, list(known.fitted.values()), beside=True)
    before, after = (dlas.predictor(each).predict(rows)[TARGET] for each in (fitted, folder))
    assert np.array_equal(before, after)
    assert len(dlas.read(kept)) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}
    with pytest.raises(InputError, match="holds a predictor already"):
        stored.write(folder, known.record, list(known.fitted.values()), beside=True)


def test_a_folder_without_a_predictor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no predictor"):
        dlas.predictor(tmp_path)


def rewritten(folder: Path, copy: Path, **changes: Any) -> Path:
    """Return a copy of a predictor with other values in its record, or in that of its only setting."""
    shutil.copytree(folder, copy)
    record = json.loads((copy / "predictor.json").read_text())
    own = {name: changes.pop(name) for name in list(changes) if name in record["settings"][0]}
    record["settings"][0] |= own
    signed(copy, json.dumps(record | changes))
    return copy


def signed(folder: Path, text: str) -> None:
    """Write a predictor's record, and its hash."""
    (folder / "predictor.json").write_text(text)
    (folder / "SHA256SUMS").write_text(sums(text.encode()))


def test_reading_a_predictor_imports_nothing_that_it_names(fitted: Path, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    with pytest.raises(InputError, match="found by its name"):
        dlas.predictor(rewritten(fitted, tmp_path / "copy", part="evil:Evil"))
    with pytest.raises(InputError, match="found by its name"):
        dlas.fit("evil:Evil", rows, target=TARGET, to=tmp_path / "p")


def test_arrays_that_do_not_fit_the_record_are_refused(fitted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not fit the columns"):
        dlas.predictor(rewritten(fitted, tmp_path / "columns", columns={"costs.once": [1.0, 1.0]}))
    with pytest.raises(InputError, match="must hold no files"):
        dlas.predictor(rewritten(fitted, tmp_path / "files", files={}))
    with pytest.raises(InputError, match="half_width"):
        dlas.predictor(rewritten(fitted, tmp_path / "width", half_width=-1.0))


def test_a_changed_record_is_refused_and_one_without_a_hash_is_read(
    fitted: Path, rows: Path, tmp_path: Path
) -> None:
    """A record has a hash since predictions may differ by a digit in it; older ones have none."""
    copy = Path(shutil.copytree(fitted, tmp_path / "copy"))
    file, hashed = copy / "predictor.json", copy / "SHA256SUMS"
    assert subprocess.run(["sha256sum", "-c", hashed.name], cwd=copy, check=False).returncode == 0
    record = json.loads(file.read_text())
    record["settings"][0]["batches"] = [1, 1]
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match="was changed since the predictor was fitted"):
        dlas.predictor(copy)
    hashed.unlink()
    expected, found = (dlas.predictor(each).predict(rows) for each in (fitted, copy))
    assert expected["in_range"].all() and not found["in_range"].any()


def test_newer_and_altered_predictors_are_refused(fitted: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(fitted, tmp_path / "copy")
    arrays = copy / "0" / "arrays.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:-8])
    with pytest.raises(InputError, match="its hash differs"):
        dlas.predictor(copy)
    record = json.loads((copy / "predictor.json").read_text())
    signed(copy, json.dumps({**record, "schema_version": 9}))
    with pytest.raises(InputError, match=r"schema 9.*up to 3"):
        dlas.predictor(copy)
    signed(copy, "pickled")
    with pytest.raises(InputError, match="not a JSON object"):
        dlas.predictor(copy)
