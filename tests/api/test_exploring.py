"""``dlas.explore``: some points of a study are measured, the others predicted, and both are shown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.api.results import table
from dlas.errors import InputError
from dlas.reporting import context_of
from dlas.reporting.blocks import Absent, Section, Table
from dlas.reporting.sections import SECTIONS
from dlas.reporting.sections.predicted import section as predicted_section
from dlas.rows.labels import MISSING
from dlas.rows.results import read_rows
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write

STUB = "tests.fixtures.stubs:Stub"
AXES: dict[str, Any] = {
    "dataset": f"{STUB}Dataset",
    "model": {"name": f"{STUB}Model", "factor": [1.0, 2.0, 3.0]},
    "algorithm": f"{STUB}Algorithm",
    "compiler": [
        {"name": f"{STUB}Compiler", "number": [0, 1, 2]},
        {"name": f"{STUB}Compiler", "trouble": "exception"},
    ],
    "hardware": {"name": f"{STUB}Hardware", "place": "explored", "missing": [False, True]},
    "batch": [1, 2],
}
"""24 points that can be measured, of which 6 fail, and 24 of a device that is missing."""
OPTIONS: dict[str, Any] = {"in_process": True, "progress": "silent"}

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLAS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    view = dlas.explore({"axes": AXES}, folder / "out", share=0.4, cache=folder / "cache", **OPTIONS)
    (folder / "said").write_text(printed(view.shown, 200))
    return folder / "out"


def test_some_points_are_measured_and_the_others_predicted(explored: Path) -> None:
    frame = dlas.read(explored, predictions=True)
    counts = frame["status"].value_counts()
    assert counts["unsupported"] == 24, "of a missing device: rows that cost nothing"
    assert counts["ok"] + counts["failed"] == 10
    assert counts["failed"] >= 3
    left_out = 6 - counts["failed"]
    assert counts["predicted"] == 24 - 10 - left_out
    predicted = frame[frame["status"].eq("predicted")]
    assert predicted["latency_s"].to_numpy(dtype=float) == pytest.approx(0.0015, rel=0.2)
    assert (predicted["latency_low_s"] < predicted["latency_s"]).all()
    assert (predicted["latency_s"] < predicted["latency_high_s"]).all()
    assert predicted["origin"].str.len().eq(64).all()
    said = (explored.parent / "said").read_text()
    assert "measured: 10 points of 24" in said and "24 points more unsupported here" in said
    assert f"predicted: {counts['predicted']} points, with intervals of 90%" in said
    assert "compiler.trouble exception has a time: failed: build: RuntimeError" in said


def test_the_table_marks_predictions_and_compares_them_with_nothing(explored: Path) -> None:
    text = printed(table(explored).shown, 300)
    frame = table(explored).frame
    predicted = frame[frame["status"].eq("predicted")]
    assert len(predicted) and predicted["relative"].isna().all()
    assert f"{len(predicted)} predicted" in text
    assert text.count("]≈") == len(predicted) and "≈ was predicted and not measured" in text


def test_the_report_has_predictions_in_a_section_of_their_own(explored: Path) -> None:
    context = context_of([explored])
    predicted = dlas.read(explored, predictions=True).query("status == 'predicted'")
    assert len(context.points) == 34 and not {*context.points["id"]} & {*predicted["id"]}
    found = {section.name: section for make in SECTIONS if isinstance(section := make(context), Section)}
    (listed,) = found["predicted"].blocks
    assert isinstance(listed, Table) and f"{len(predicted)} points were not" in found["predicted"].lead
    shown = [[cell.text for cell in line.cells] for line in listed.lines]
    assert 0 < len(shown) <= len(predicted)
    assert all(re.fullmatch(r"1\.\d+ \[[\d.]+, [\d.]+\]", line[-2]) for line in shown), "with intervals"
    assert {line[-1] for line in shown} <= {"1.500", MISSING}, "the fastest that was measured"


def test_a_report_without_predictions_says_how_to_get_them(explored: Path, tmp_path: Path) -> None:
    found = predicted_section(context_of([without_predictions(explored, tmp_path)]))
    assert isinstance(found, Absent) and "dlas explore" in found.needs


def without_predictions(folder: Path, scratch: Path) -> Path:
    copy = scratch / "copy"
    copy.mkdir()
    (copy / "results.jsonl").write_text((folder / "results.jsonl").read_text())
    return copy


def test_it_goes_on_with_a_larger_share_and_predictions_give_way_to_rows(tmp_path: Path) -> None:
    study = {"axes": {**AXES, "compiler": AXES["compiler"][0], "hardware": f"{STUB}Hardware"}}
    dlas.explore(study, tmp_path / "out", share=0.3, **OPTIONS)
    first = {each.id: each.started for each in read_rows(tmp_path / "out")}
    dlas.explore(study, tmp_path / "out", share=0.3, **OPTIONS)
    again = {each.id: each.started for each in read_rows(tmp_path / "out")}
    assert again == first, "nothing is measured twice"
    frame = dlas.explore(study, tmp_path / "out", share=0.5, **OPTIONS).frame
    assert first.keys() < {each.id for each in read_rows(tmp_path / "out")}
    assert frame["id"].is_unique and frame["status"].value_counts().to_dict() == {"ok": 9, "predicted": 9}
    dlas.run(study, tmp_path / "out", **OPTIONS)
    assert table(tmp_path / "out").frame["status"].eq("ok").all(), "what was measured since is not predicted"


def test_a_sample_explores_the_points_that_it_draws(tmp_path: Path) -> None:
    study = {"axes": {"batch": [*range(1, 40)], **{axis: AXES[axis] for axis in ("dataset", "model")}}}
    study["axes"] |= {"compiler": f"{STUB}Compiler", "algorithm": f"{STUB}Algorithm"}
    study |= {"sample": {"points": 6, "axes": ["batch", "model"]}}
    study["axes"]["hardware"] = f"{STUB}Hardware"
    frame = dlas.explore(study, tmp_path / "out", share=1, **OPTIONS).frame
    assert frame["status"].tolist() == ["ok"] * 6
    assert (tmp_path / "out" / "predictions.jsonl").read_text() == ""


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, r"--share 0: expected a share above 0 and at most 1"),
        (2, r"--share 2: expected"),
        (0.05, r"--share 0\.05 of 24 points is 2 points, and it takes 3 to measure every value"),
    ],
)
def test_a_bad_share_is_one_message_and_nothing_is_written(tmp_path: Path, share: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        dlas.explore({"axes": AXES}, tmp_path / "out", share=share, **OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_machine_are_refused(tmp_path: Path) -> None:
    hardware = {"name": f"{STUB}Hardware", "place": "explored"}
    folder = write(tmp_path / "out", [row(hardware=hardware, device={"cpu": "there"})])
    with pytest.raises(InputError, match=r"from another machine: there.*") as refused:
        dlas.explore({"axes": {**AXES, "hardware": hardware}}, folder, **OPTIONS)
    assert "--anyway" not in str(refused.value) and "what follows from the rows" in str(refused.value)
    assert [path.name for path in folder.iterdir()] == ["results.jsonl"]


def test_a_study_without_a_device_is_refused(tmp_path: Path) -> None:
    missing = {"axes": {**AXES, "hardware": {"name": f"{STUB}Hardware", "missing": True}}}
    with pytest.raises(InputError, match=r"can be measured here: .*no such board here"):
        dlas.explore(missing, tmp_path / "out", **OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_damaged_predictions_are_one_message(explored: Path, tmp_path: Path) -> None:
    copy = without_predictions(explored, tmp_path)
    (copy / "predictions.jsonl").write_text(json.dumps({"id": 1}) + "\n")
    with pytest.raises(InputError, match=r"predictions\.jsonl, line 1: not a predicted point"):
        table(copy)
