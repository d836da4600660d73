"""``dlas search``: what keeps a bound and scores highest is found, remembered, and measured again."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import dlas
from benchmarks import subnet_search
from dlas.errors import InputError
from dlas.face.reporting import context_of
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.sections.searches import section
from dlas.face.tables.table import Table
from dlas.networks.subnets.shapes import ofa
from dlas.networks.subnets.tables import write_tables
from dlas.networks.subnets.written import codes, is_in
from dlas.prediction.adaptive.evolution.estimators import PredictorSource
from dlas.prediction.adaptive.evolution.evolution import EvolutionarySearch
from dlas.prediction.adaptive.evolution.identities import digest
from dlas.prediction.adaptive.evolution.record import CandidateRecord, CostRecord, keeps
from dlas.prediction.adaptive.evolution.space import StudySpace
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.results import Row
from dlas.sweep.study.study import Study
from tests.fixtures.package import ROOT
from tests.fixtures.rows import row, write
from tests.fixtures.training_rows import training_rows

PHONE = ROOT / "tests/data/ofa_note10.csv.xz"
STUB = "tests.fixtures.stubs:Stub"
IMAGES = {"name": "random", "classes": 1000, "images": 2}
NARROW = {"name": "ofa_mobilenet_v3", "width": 1.0, "subnet": "drawn"}
AXES: dict[str, Any] = {
    "dataset": {**IMAGES, "size": [160, 176, 192, 208, 224]},
    "model": {"name": "ofa_mobilenet_v3", "width": 1.2, "subnet": "drawn"},
    "compiler": "onnxruntime",
    "hardware": {"name": "local_cpu", "threads": 1},
}
STUDY: dict[str, Any] = {
    "name": "search",
    "axes": AXES,
    "sample": {"points": 3, "axes": ["dataset", "model"]},
}
FEW: dict[str, Any] = {
    "population": 16,
    "generations": 6,
    "winners": 0,
    "progress": "silent",
    "steps": "inline",
}

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a predictor of a phone's latency, a table of blocks, and weights."""
    folder = tmp_path_factory.mktemp("made")
    pd.read_csv(PHONE).head(100).to_csv(folder / "phone.csv", index=False)
    dlas.import_rows(folder / "phone.csv", folder / "rows")
    asked: dict[str, Any] = {"target": "latency_s", "hold_out": "model/10", "options": {"costs": "stage"}}
    dlas.fit("additive", folder / "rows", to=folder / "phone", **asked)
    shapes = ofa(1.2)
    names = {size: [*shapes.keys(size), *shapes.fixed_keys(size)] for size in (160, 224)}
    write_tables(
        folder / "tables", {size: dict.fromkeys(own, size * 1e-5) for size, own in names.items()}, {}
    )
    # The more is encoded, the larger the score: each layer adds its kernel and its expansion.
    weight = torch.tensor([[3.0, 5.0, 7.0] * 20 + [3.0, 4.0, 6.0] * 20 + [0.0] * 8]) / 300
    state = {"0.weight": torch.cat([weight, -weight]), "0.bias": torch.zeros(2)}
    torch.save(
        state | {"2.weight": torch.tensor([[1.0, -1.0]]), "2.bias": torch.ones(1)}, folder / "scores.pth"
    )
    return folder


def search(made: Path, out: Path, **given: Any) -> Any:
    asked: dict[str, Any] = {"estimator": made / "phone", "maximise": made / "scores.pth", **FEW, **given}
    return dlas.search(asked.pop("study", STUDY), out, within={"latency_s": asked.pop("most", 0.03)}, **asked)


def found(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "search.json").read_text())
    return content


def test_what_is_found_keeps_the_bound_and_scores_higher_than_what_is_drawn(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search(made, tmp_path / "out")
    record = found(tmp_path / "out")
    best = record["population"][0]
    assert record["finished"] and record["generation"] == 6 and len(record["population"]) == 16
    costs = [each["costs"]["latency_s"] for each in record["population"]]
    assert all(each["value"] < each["high"] <= 0.03 for each in costs)
    assert best["score"] > np.mean([each["score"] for each in record["population"]])
    code = codes([best["content"]["model"]["subnet"]]).astype(int)
    assert best["score"] == pytest.approx(1 + code.sum() / 300, rel=1e-6)
    values = [each["costs"]["latency_s"]["value"] for each in record["front"]]
    scores = [each["score"] for each in record["front"]]
    assert values == sorted(values) and scores == sorted(scores) and len(values) > 3
    assert record["asked_for"] >= record["estimated"] > 16
    assert "was fitted on Samsung Galaxy Note10" in capsys.readouterr().err
    digests = record["identities"]
    assert digests == {
        str(made / "phone"): digest(made / "phone"),
        str(made / "scores.pth"): hashlib.sha256((made / "scores.pth").read_bytes()).hexdigest(),
    }
    first = (tmp_path / "out/search.json").read_bytes()
    search(made, tmp_path / "out")
    assert (tmp_path / "out/search.json").read_bytes() == first, "it is finished"


def test_an_interrupted_search_goes_on_and_ends_alike(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(made, tmp_path / "whole")
    breeding = EvolutionarySearch.breeding

    def interrupted(self: EvolutionarySearch[Any]) -> Any:
        if self.generation == 3:
            self.rng.random()  # in the middle of a generation
            raise KeyboardInterrupt
        return breeding(self)

    monkeypatch.setattr(EvolutionarySearch, "breeding", interrupted)
    with pytest.raises(KeyboardInterrupt):
        search(made, tmp_path / "out")
    assert found(tmp_path / "out")["generation"] == 3 and not found(tmp_path / "out")["finished"]
    monkeypatch.setattr(EvolutionarySearch, "breeding", breeding)
    with pytest.raises(InputError, match=r"holds a search with `mutation=0.1`, and this one has `mut"):
        search(made, tmp_path / "out", mutation=0.2)
    search(made, tmp_path / "out")
    for name in ("population", "front", "generation"):
        assert found(tmp_path / "out")[name] == found(tmp_path / "whole")[name], name


def test_another_content_of_an_estimator_is_another_search(made: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(made / "tables", own)
    search(made, tmp_path / "out", estimator=own, generations=1)
    record = found(tmp_path / "out")
    first = record["identities"][str(own)]
    record["finished"] = False
    (tmp_path / "out/search.json").write_text(json.dumps(record))
    (own / "notes.txt").write_text("measured again")
    assert digest(own) != first
    with pytest.raises(InputError, match=r"unfinished search by another content of '.*own': give the same"):
        search(made, tmp_path / "out", estimator=own, generations=1)
    record["identities"] = {}
    (tmp_path / "out/search.json").write_text(json.dumps(record))
    search(made, tmp_path / "out", estimator=own, generations=1)
    assert found(tmp_path / "out")["identities"][str(own)] == digest(own), "older searches tell none"


def test_a_space_is_searched_alone(made: Path, tmp_path: Path) -> None:
    axes = {**AXES, "model": {**AXES["model"], "space": "compofa_elastic"}}
    search(made, tmp_path / "out", study={**STUDY, "axes": axes}, generations=3)
    models = [each["content"]["model"] for each in found(tmp_path / "out")["population"]]
    assert all(is_in(each["subnet"], "compofa_elastic") and "space" not in each for each in models)


def test_candidates_are_called_by_what_differs(made: Path, tmp_path: Path) -> None:
    axes = {**AXES, "dataset": {**IMAGES, "size": 160}}
    search(made, tmp_path / "out", study={**STUDY, "axes": axes, "sample": {"points": 2}}, generations=0)
    best = found(tmp_path / "out")["population"][0]
    subnet = best["content"]["model"]["subnet"]
    assert best["label"] == f"ofa_mobilenet_v3(subnet={subnet}, width=1.2)"


@pytest.mark.slow
def test_a_subnetwork_to_train_keeps_memory_and_time(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows", list(training_rows()))
    bounds = {"peak_memory_bytes": 4e9, "latency_s": 9.0}
    for target in bounds:
        asked: dict[str, Any] = {"target": target, "hold_out": "network"}
        dlas.fit("additive", rows, to=tmp_path / target, **asked)
    axes = {**AXES, "compiler": "torch_eager", "task": "training", "batch": 8}
    study = {**STUDY, "axes": {**axes, "dataset": {**IMAGES, "size": [128, 160]}}}
    given: dict[str, Any] = {**FEW, "population": 4, "generations": 1}
    given["maximise"] = tmp_path / "scores.safetensors"
    layer = {"0.weight": torch.full((1, 128), 0.01), "0.bias": torch.ones(1)}
    save_file(layer, given["maximise"])
    estimators = [tmp_path / target for target in bounds]
    dlas.search(study, tmp_path / "out", estimator=estimators, within=bounds, **given)
    best = found(tmp_path / "out")["population"][0]
    own = {**STUDY, "sample": None, "axes": {**axes, **best["content"]}}
    shared: dict[str, Any] = {"progress": "silent", "steps": "inline", "cache": tmp_path / "cache"}
    for target, most in bounds.items():
        predicted = dlas.predict(tmp_path / target, own, anyway=True, **shared)
        cost = best["costs"][target]
        assert cost["value"] == pytest.approx(predicted.frame[target].item()) and cost["high"] <= most


def test_what_is_mostly_unknown_is_no_candidate(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = StudySpace.of(Study.of(STUDY))
    source = PredictorSource.of(made / "phone", space, Session.open("inline"))
    points = [space.point(space.draw(np.random.default_rng(seed))) for seed in range(3)]
    known, _ = source(points)
    shares = np.array([0.0, 0.05, 0.2])
    monkeypatch.setattr(type(source.fitted), "unknown", lambda self, samples: shares)
    value, high = source(points)
    assert value.tolist() == [*known[:2], np.inf] and high[2] == np.inf
    assert high[0] / value[0] < high[1] / value[1]


def test_another_batch_is_told(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search(made, tmp_path / "out", study={**STUDY, "axes": {**AXES, "batch": 8}}, most=9.0, generations=0)
    assert "was fitted to batches of 1 to 1, and the study has 8" in " ".join(capsys.readouterr().err.split())


def test_what_the_study_skips_is_no_candidate(made: Path, tmp_path: Path) -> None:
    skip = [{"dataset": [{"size": size} for size in (192, 208, 224)], "reason": "too large"}]
    search(made, tmp_path / "out", study={**STUDY, "skip": skip}, most=0.05, generations=2)
    record = found(tmp_path / "out")
    sizes = {each["content"]["dataset"]["size"] for each in (*record["population"], *record["front"])}
    assert sizes <= {160, 176}


def test_more_winners_of_a_finished_search_may_be_asked_for(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[tuple[int, float]] = []

    def noted(self: Session, study: Any, points: Any, folder: Path) -> list[Row]:
        measured.append((len(points), found(folder)["spent_s"]))
        return [row(20.0, id=point.id, **point.content()) for point in points]

    monkeypatch.setattr(Session, "measure", noted)
    for winners in (0, 2, 1):
        view = search(made, tmp_path / "out", winners=winners, generations=1)
    assert [count for count, _ in measured] == [2] and len(view.frame) == 2 and view.frame["kept"].all()
    record = found(tmp_path / "out")
    assert record["finished"] and record["generation"] == 1
    assert record["spent_s"] == measured[0][1], "measuring winners is no part of the search"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": {"name": "mine.py:Net"}}, "is no candidate of the study"),
        ({"model": {"name": "ofa_mobilenet_v3", "subnet": "33:33"}}, "is no candidate of the study"),
        ({"model": {"name": "ofa_mobilenet_v3", "subnet": ["33:33"]}}, "TypeError"),
        ({"model": {}}, "KeyError: 'name'"),
        ({"batch": 1}, "a candidate of dataset, model is expected"),
    ],
)
def test_a_damaged_search_is_refused(
    change: dict[str, Any], message: str, made: Path, tmp_path: Path
) -> None:
    search(made, tmp_path / "out", generations=1)
    record = found(tmp_path / "out")
    record["finished"], record["winners"] = False, []
    record["population"][0]["content"] |= change
    text = json.dumps(record)
    (tmp_path / "out/search.json").write_text(text)
    with pytest.raises(InputError, match=f"holds a damaged search: .*{message}"):
        search(made, tmp_path / "out", generations=1)
    assert (tmp_path / "out/search.json").read_text() == text
    (tmp_path / "out/search.json").write_text(json.dumps({**record, "population": []}))
    with pytest.raises(InputError, match=r"search\.json: population"):
        search(made, tmp_path / "out", generations=1)


def test_a_bound_that_was_not_measured_is_not_kept() -> None:
    def told(**measured: float | None) -> bool | None:
        costs = {name: CostRecord(value=1.0, high=1.0, measured=value) for name, value in measured.items()}
        record = CandidateRecord(label="", content={}, score=1.0, costs=costs, id="")
        return keeps(record, {"latency_s": 2.0, "energy_j": 2.0})

    assert told(latency_s=1.0, energy_j=1.0) is True
    assert told(latency_s=1.0, energy_j=None) is None
    assert told(latency_s=3.0, energy_j=None) is False


def test_a_table_tells_costs_without_intervals(made: Path, tmp_path: Path) -> None:
    search(made, tmp_path / "out", estimator=made / "tables", most=0.035, generations=2)
    record = found(tmp_path / "out")
    each = record["population"][0]
    layers = sum(map(str.isdigit, each["content"]["model"]["subnet"])) / 2
    cost = each["costs"]["latency_s"]
    assert (
        cost["high"]
        == cost["value"]
        == pytest.approx((layers + 6) * each["content"]["dataset"]["size"] * 1e-5)
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"most": 1e-4}, "none of .* candidates that were drawn keeps it; the nearest, .*subnet=.* has"),
        ({"estimator": "nowhere"}, "`estimator='nowhere'`: there is no such folder"),
        ({"estimator": ["measure", "measure"]}, "`estimator='measure'`: another one tells latency_s"),
        ({"maximise": "nowhere"}, "`maximise='nowhere'`: there is no such predictor"),
        ({"maximise": "nowhere.pth"}, "there is no such file"),
        ({"population": 1}, "`population=1`: "),
        ({"winners": -1}, "`winners=-1`: expected a number from 0 on"),
        ({"most": -1.0}, "`within=-1.0`: "),
        ({"study": {**STUDY, "axes": {**AXES, "dataset": {**IMAGES, "size": 241}}}}, "images of 241x241"),
        (
            {"study": {**STUDY, "axes": {**AXES, "model": {**AXES["model"], "space": "compofa"}}}},
            "option space = 'compofa': ",
        ),
        (
            {"study": {**STUDY, "skip": [{"model": "ofa_mobilenet_v3", "reason": "all"}]}},
            "in a row gave none that is new and that no rule skips",
        ),
        (
            {"estimator": "tables", "study": {**STUDY, "axes": {**AXES, "batch": 8}}},
            "is of inference with batch 1, uncompressed, and a point has batch 8",
        ),
        (
            {"estimator": "tables", "study": {**STUDY, "axes": {**AXES, "model": NARROW}}},
            "of width 1.0: it is for width 1.2",
        ),
        (
            {"estimator": "tables", "study": {**STUDY, "axes": {**AXES, "dataset": {**IMAGES, "size": 128}}}},
            "the table is for images of 160 to 224, and a point has 128",
        ),
        (
            {"study": {**STUDY, "axes": {**AXES, "compiler": "torch_eager", "task": "training"}}},
            "predicts inference, and the study's task is training",
        ),
        ({"maximise": "phone"}, "predicts latency_s, of which less is better"),
        ({"parents": 0.0}, "`parents=0.0`: "),
        ({"study": {**STUDY, "sample": None}}, r"needs a table \[sample\]"),
        (
            {"study": {**STUDY, "axes": {**AXES, "batch": [1, 2]}}},
            "a search is for one batch, and the study has 2",
        ),
        (
            {
                "study": {
                    **STUDY,
                    "axes": {**AXES, "model": "cifar_resnet18"},
                    "sample": {"points": 2, "axes": ["dataset"]},
                }
            },
            "needs a study that draws",
        ),
    ],
)
def test_bad_input_is_one_message_and_writes_nothing(
    given: dict[str, Any], message: str, made: Path, tmp_path: Path
) -> None:
    places = {name: made / value for name, value in given.items() if value in ("tables", "phone")}
    with pytest.raises(InputError, match=message):
        search(made, tmp_path / "out", **{**given, **places})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {"0.weight": torch.zeros(1, 127), "0.bias": torch.zeros(1)},
            "layer 1 reads 127 values, not 128",
        ),
        ({"0.weight": torch.zeros(2, 128), "0.bias": torch.zeros(2)}, "it writes 2 values"),
        ({"0.weight": torch.zeros(1, 128)}, "layer 1 has no weight with a bias"),
        (
            {"0.weight": torch.full((1, 128), torch.nan), "0.bias": torch.zeros(1)},
            "layer 1 has values that are not finite",
        ),
        ({1: torch.zeros(1)}, "1 is no weight or bias of a numbered layer"),
        ({"0.weight": torch.zeros(1, 128, dtype=torch.int64)}, r"holds no weights, but .* of torch.int64"),
        ({"0.weight": torch.zeros(1).expand(1 << 20, 128)}, r"holds no weights, but \(1048576, 128\)"),
        ({"layer": torch.zeros(1)}, "'layer' is no weight or bias of a numbered layer"),
        ({}, "it has 0 layers"),
    ],
)
def test_weights_that_are_something_else_are_refused(
    state: dict[Any, torch.Tensor], message: str, made: Path, tmp_path: Path
) -> None:
    torch.save(state, tmp_path / "wrong.pth")
    with pytest.raises(InputError, match=message):
        search(made, tmp_path / "out", maximise=tmp_path / "wrong.pth")
    assert not (tmp_path / "out").exists()


def test_weights_execute_nothing(made: Path, tmp_path: Path) -> None:
    torch.save({"0.weight": Executes(str(tmp_path / "executed"))}, tmp_path / "bad.pth")
    with pytest.raises(InputError, match="expected a safetensors file or a torch state dict"):
        search(made, tmp_path / "out", maximise=tmp_path / "bad.pth")
    assert not (tmp_path / "executed").exists()


class Executes:
    """Makes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def test_winners_are_measured_again_and_the_report_shows_them(tmp_path: Path) -> None:
    axes: dict[str, Any] = {
        "dataset": f"{STUB}Dataset",
        "model": {"name": f"{STUB}Model", "factor": "drawn"},
        "algorithm": f"{STUB}Algorithm",
        "compiler": f"{STUB}Compiler",
        "hardware": f"{STUB}Hardware",
    }
    study = {"name": "stubs", "axes": axes, "sample": {"points": 2, "axes": ["model"]}}
    given: dict[str, Any] = {
        **FEW,
        "population": 3,
        "generations": 1,
        "winners": 2,
        "cache": tmp_path / "cache",
    }
    out = tmp_path / "out"
    view = dlas.search(
        study, out, estimator="measure", maximise="accuracy", within={"latency_s": 10.0}, **given
    )
    assert view.frame["kept"].tolist() == [True, True] and view.frame["latency_s_measured"].notna().all()
    assert "2 of 2 winners keep the bounds" in str(view)
    rows = dlas.read(out)
    assert set(rows["id"]) == set(view.frame["id"]) and len(dlas.read(out / "measured")) >= 3
    shown = section(context_of([out]))
    assert isinstance(shown, Section) and "2 of 2 winners" in shown.blocks[0].sentence  # type: ignore[union-attr]
    (table,) = (block for block in shown.blocks if isinstance(block, Table))
    assert len(table.lines) == 2 and table.columns[-1].header == "keeps the bounds"
    assert [line.cells[-1].text for line in table.lines] == ["yes", "yes"]
    (out / "search.json").unlink()
    assert isinstance(section(context_of([out])), Absent)
    with pytest.raises(InputError, match="holds rows and no search"):
        dlas.search(study, out, estimator="measure", maximise="accuracy", within={"latency_s": 10.0}, **given)


@pytest.mark.slow
def test_several_bounds_are_kept_at_once(made: Path, tmp_path: Path) -> None:
    rows = dlas.read(made / "rows").assign(**{"energy_j": lambda frame: 30 - 1000 * frame["latency_s"] / 2})
    kept = [
        "machine",
        "latency_s",
        "energy_j",
        "batch",
        "dataset.size",
        "dataset.classes",
        "model.width",
        "model.subnet",
    ]
    named = {axis: rows[f"{axis}_name"] for axis in ("dataset", "model", "compiler", "hardware")}
    rows[kept].assign(**named).to_csv(tmp_path / "energy.csv", index=False)
    dlas.import_rows(tmp_path / "energy.csv", tmp_path / "rows")
    asked: dict[str, Any] = {"target": "energy_j", "hold_out": "model/10"}
    dlas.fit("mean", tmp_path / "rows", to=tmp_path / "mean", **asked)
    both = [made / "phone", tmp_path / "mean"]
    given: dict[str, Any] = {"maximise": made / "scores.pth", **FEW, "generations": 1}
    dlas.search(
        STUDY, tmp_path / "out", estimator=both, within={"latency_s": 0.03, "energy_j": 60.0}, **given
    )
    costs = found(tmp_path / "out")["population"][0]["costs"]
    assert list(costs) == ["latency_s", "energy_j"] and costs["energy_j"]["high"] <= 60
    with pytest.raises(InputError, match=r"none of .* keeps it"):
        dlas.search(
            STUDY, tmp_path / "o", estimator=both, within={"latency_s": 0.03, "energy_j": 1.0}, **given
        )
    with pytest.raises(InputError, match="tells energy_j; give `within=energy_j"):
        dlas.search(STUDY, tmp_path / "o", estimator=both, within={"latency_s": 0.03}, **given)
    with pytest.raises(InputError, match="no `estimator=` tells it; these are told: latency_s"):
        dlas.search(
            STUDY, tmp_path / "o", estimator=both[0], within={"latency_s": 0.03, "energy_j": 60.0}, **given
        )


@pytest.mark.slow
def test_the_benchmark_of_searches_keeps_what_its_lines_rest_on(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phone, scores = str(made / "phone"), str(made / "scores.pth")
    study = ROOT / "experiments/ofa-latency/study.toml"
    words = [str(study), "--maximise", scores, "--estimators", f"mine={phone}"]
    words += ["--bounds", "0.03", "--spaces", "compofa_fixed", "--population", "8", "--generations", "1"]
    monkeypatch.setattr("sys.argv", ["subnet_search", *words, "--out", str(tmp_path / "out")])
    subnet_search.main()
    told = capsys.readouterr().out
    lines = [json.loads(line) for line in (tmp_path / "out/searches.jsonl").read_text().splitlines()]
    assert [each["estimator"] for each in lines] == ["mine", "mine, without memory"]
    for line in lines:
        assert line["within"] == {"latency_s": 0.03} and line["value"] < line["high"] <= 0.03
        assert line["identities"] == {phone: digest(made / "phone"), scores: digest(made / "scores.pth")}
        assert Study.of(tomllib.loads(line["study"])).name == "ofa-latency" and line["content"]["model"]
        assert f"| {line['score']:.4f} | {1e3 * line['value']:.4g} |" in told
