"""``dlas.explore``: some points of a study are measured, the others predicted, and both are shown."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.errors import InputError
from dlas.face.api.rows import table
from dlas.face.reporting import context_of, report
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.sections import SECTIONS
from dlas.face.reporting.sections.predicted import section as predicted_section
from dlas.face.tables.table import Table
from dlas.prediction.adaptive.share.strategy import measure_share
from dlas.stack import Images, Program
from dlas.sweep.engine import session
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.predictions import read_predictions
from dlas.sweep.rows.results import FILE, Row, read_rows
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write
from tests.fixtures.stubs import StubHardware, StubProgram

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


@pytest.mark.slow
def test_the_report_has_predictions_in_a_section_of_their_own(explored: Path) -> None:
    context = context_of([explored])
    predicted = dlas.read(explored, predictions=True).query("status == 'predicted'")
    assert len(context.points) == 34 and not {*context.points["id"]} & {*predicted["id"]}
    found = {section.name: section for make in SECTIONS if isinstance(section := make(context), Section)}
    (listed,) = found["predicted"].blocks
    assert isinstance(listed, Table) and f"{len(predicted)} points were predicted" in found["predicted"].lead
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
        (0, r"`share=0`: expected a share above 0 and at most 1"),
        (2, r"`share=2`: expected"),
        (0.05, r"`share=0\.05` of 24 points is 2 points, and it takes 3 to measure every value"),
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
    assert "anyway" not in str(refused.value) and "what follows from the rows" in str(refused.value)
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


PLAIN: dict[str, Any] = {"axes": {**AXES, "compiler": AXES["compiler"][0], "hardware": f"{STUB}Hardware"}}
"""18 points, none of which fails."""


def spoil_keys(folder: Path) -> None:
    """Make rows look as if earlier sources had written them."""
    path = folder / FILE
    path.write_text(re.sub(r'"key":"\w+"', '"key":"earlier"', path.read_text()))


def times_written(folder: Path) -> Counter[str]:
    """Return how many rows were ever written of each point, also those that later ones replaced."""
    return Counter(re.findall(r'^{"id":"(\w+)"', (folder / FILE).read_text(), re.MULTILINE))


def test_rows_that_are_out_of_date_are_measured_again_and_no_others(tmp_path: Path) -> None:
    dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    spoil_keys(tmp_path / "out")
    dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    assert [*times_written(tmp_path / "out").values()] == [2] * 8
    dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    assert [*times_written(tmp_path / "out").values()] == [2] * 8


def test_rows_that_are_out_of_date_and_exceed_the_share_are_told_and_not_relied_on(tmp_path: Path) -> None:
    dlas.run(PLAIN, tmp_path / "out", **OPTIONS)
    spoil_keys(tmp_path / "out")
    view = dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    assert sorted(times_written(tmp_path / "out").values()) == [1] * 10 + [2] * 8
    assert "out of date: 10 rows of earlier sources or settings" in printed(view.shown, 200)


def test_a_device_that_was_away_takes_nothing_of_the_share(tmp_path: Path) -> None:
    away = {"axes": {**PLAIN["axes"], "hardware": {"name": f"{STUB}Hardware", "missing": True}}}
    dlas.run(away, tmp_path / "out", **OPTIONS)
    path = tmp_path / "out" / FILE
    of_here = {point.id for point in dlas.Study(**PLAIN).points()}
    there = path.read_text().replace(',"missing":true', "")
    # As the rows would be if the same device had been away.
    ids = iter(sorted(of_here))
    path.write_text(re.sub(r'"id":"\w+"', lambda _: f'"id":"{next(ids)}"', there))
    frame = dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS).frame
    assert frame["status"].eq("ok").sum() == 8


def test_points_that_cannot_be_measured_have_rows_where_no_batch_is_left(tmp_path: Path) -> None:
    dlas.run(PLAIN, tmp_path / "out", **OPTIONS)
    with_another = {"axes": {**PLAIN["axes"], "hardware": {**AXES["hardware"], "place": "stub"}}}
    frame = dlas.explore(with_another, tmp_path / "out", share=1, **OPTIONS).frame
    assert frame["status"].value_counts().to_dict() == {"ok": 18, "unsupported": 18}
    dlas.explore(with_another, tmp_path / "out", share=1, **OPTIONS)
    assert [*times_written(tmp_path / "out").values()] == [1] * 36, "they are written once"


def test_failed_points_are_run_again_when_asked_for(tmp_path: Path) -> None:
    study = {"axes": {**AXES, "hardware": f"{STUB}Hardware"}}
    dlas.explore(study, tmp_path / "out", share=0.4, **OPTIONS)
    failed = {each.id for each in read_rows(tmp_path / "out") if each.status == "failed"}
    dlas.explore(study, tmp_path / "out", share=0.4, retry="failed", **OPTIONS)
    written = times_written(tmp_path / "out")
    assert failed and {row_id for row_id, times in written.items() if times > 1} == failed
    with pytest.raises(InputError, match="unknown status 'lost'"):
        dlas.explore(study, tmp_path / "other", retry="lost", **OPTIONS)
    assert not (tmp_path / "other").exists()


def test_one_runner_runs_all_batches_and_none_where_nothing_is_left(tmp_path: Path) -> None:
    study = dlas.Study(**PLAIN)
    for started in (True, False):
        with Session.open("inline", cache=tmp_path / "cache") as session:
            measure_share(study, tmp_path / "out", 0.8, session)
            assert session.workers.started is started


def test_the_whole_study_is_checked_before_a_point_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(points: Any) -> None:
        raise InputError(f"{len(list(points))} points")

    monkeypatch.setattr(session, "check_trainable", refuse)
    with pytest.raises(InputError, match="18 points"):
        dlas.explore(PLAIN, tmp_path / "out", **OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_predictions_of_another_study_stay(tmp_path: Path) -> None:
    dlas.explore({**PLAIN, "name": "first"}, tmp_path / "out", share=0.4, **OPTIONS)
    other = {"axes": {**PLAIN["axes"], "batch": [4, 8]}, "name": "second"}
    frame = dlas.explore(other, tmp_path / "out", share=0.4, **OPTIONS).frame
    assert {*frame["study"]} == {"second"}
    both = dlas.read(tmp_path / "out", predictions=True).query("status == 'predicted'")
    assert both["study"].value_counts().to_dict() == {"first": 10, "second": 10}


def test_few_points_are_told_to_be_few(tmp_path: Path) -> None:
    few = dlas.explore(PLAIN, tmp_path / "out", share=0.2, **OPTIONS)
    assert "few: 4 points with a time, and it takes 3 to have every value once" in printed(few.shown, 300)
    more = dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    assert "few:" not in printed(more.shown, 300)


@pytest.mark.slow
def test_a_filter_by_status_does_not_bring_back_predictions_of_what_was_measured(tmp_path: Path) -> None:
    dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    assert len(table(tmp_path / "out", where="status=predicted").frame) == 10
    dlas.explore(PLAIN, tmp_path / "out", share=0.4, **OPTIONS)
    earlier = (tmp_path / "out" / "predictions.jsonl").read_text()
    dlas.explore(PLAIN, tmp_path / "out", share=0.8, **OPTIONS)
    (tmp_path / "out" / "predictions.jsonl").write_text(earlier)
    assert len(table(tmp_path / "out", where="status=predicted").frame) == 3


@pytest.mark.slow
def test_a_report_of_predictions_alone_shows_them(explored: Path, tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    folder.mkdir()
    (folder / "predictions.jsonl").write_text((explored / "predictions.jsonl").read_text())
    page = folder / "report.html"
    for where, given in (([], folder), (["status=predicted"], explored)):
        report([given], page, where)
        text = page.read_text()
        assert "Nothing of this was measured." in text and "Predicted points" in text
        assert "no rows" not in text and re.search(r"0 points from .* \(\d+ were predicted\)", text)


@dataclass(frozen=True)
class Paced(StubHardware):
    """Takes twice as long for a byte of scratch memory, three times for two."""

    def measure(
        self, program: Program, images: Images, settings: Any, turn: Callable[[], None]
    ) -> dict[str, Any]:
        """Return made-up samples."""
        assert isinstance(program, StubProgram)
        found = super().measure(program, images, settings, turn)
        return {**found, "latency_s": [(1 + program.scratch_bytes) * each for each in found["latency_s"]]}


RIVALS: dict[str, Any] = {
    "axes": {
        **AXES,
        "compiler": [
            {"name": f"{STUB}Compiler", "scratch_bytes": [0, 1, 2]},
            {"name": f"{STUB}Compiler", "trouble": "exception"},
        ],
        "hardware": "tests.face.api.test_exploring:Paced",
    }
}
"""6 networks, each by three compilers, and by one that fails."""


def scratch(row: Row) -> int:
    """Return by how much a row's program is slowed."""
    return int(row.compiler.get("scratch_bytes", 0))


@pytest.mark.slow
def test_for_the_fastest_all_race_and_those_that_came_near_are_measured_in_full(tmp_path: Path) -> None:
    view = dlas.explore(RIVALS, tmp_path / "out", goal="fastest", **OPTIONS)
    full = list(read_rows(tmp_path / "out"))
    assert len(full) == 6 and not any(map(scratch, full))
    raced = list(read_rows(tmp_path / "out" / "race"))
    timed = [each for each in raced if each.timed]
    assert len(timed) == 18 and 3 <= len(raced) - len(timed) < 6, "what fails is given up"
    left = view.frame[view.frame["status"].eq("predicted")]
    told = [each for each in read_predictions(tmp_path / "out") if "3 samples in a race" in each.doubt]
    of_race = left[left["id"].isin([each.row.id for each in told])]
    assert len(of_race) == 12 and of_race["latency_low_s"].isna().all()
    assert {*of_race["latency_s"].round(6)} == {0.003, 0.0045}
    said = printed(view.shown, 200)
    assert "measured in full: 6 points, those that came within 1.3 times the fastest" in said
    before = times_written(tmp_path / "out"), times_written(tmp_path / "out" / "race")
    dlas.explore(RIVALS, tmp_path / "out", goal="fastest", **OPTIONS)
    assert (times_written(tmp_path / "out"), times_written(tmp_path / "out" / "race")) == before


@pytest.mark.slow
def test_what_was_measured_for_the_rest_is_a_rival_in_the_race(tmp_path: Path) -> None:
    dlas.explore(RIVALS, tmp_path / "out", share=0.5, **OPTIONS)
    before = {each.id for each in read_rows(tmp_path / "out")}
    dlas.explore(RIVALS, tmp_path / "out", goal="fastest", **OPTIONS)
    assert not before & {each.id for each in read_rows(tmp_path / "out" / "race")}
    added = [each for each in read_rows(tmp_path / "out") if each.id not in before]
    assert not any(map(scratch, added))
    timed = [each for each in read_rows(tmp_path / "out") if each.timed and not scratch(each)]
    assert len(timed) == 6


def test_an_unknown_goal_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown goal 'slowest'.*fastest, rest"):
        dlas.explore(RIVALS, tmp_path / "out", goal="slowest", **OPTIONS)
    assert list(tmp_path.iterdir()) == []
