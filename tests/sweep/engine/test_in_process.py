"""A sweep whose steps run in its own process gives the rows that it gives with a process for each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.bench.processes.inline import Inline
from tests.fixtures.commands import dlas
from tests.fixtures.engine import rows, run, same, study_of
from tests.fixtures.stubs import StubModel

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

STUDY = """
compression = ["none", "tests.fixtures.stubs:StubCompression"]
compiler = [
    { name = "tests.fixtures.stubs:StubCompiler", trouble = ["none", "exception", "unsupported"] },
    { name = "tests.fixtures.stubs:StubCompiler", trouble = "wrong", at = "run" },
    "tests.fixtures.stubs:StubLibrary",
]
"""


@pytest.mark.slow
def test_the_rows_are_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    study = study_of(STUDY.replace("{ ", "{").replace(" }", "}"))
    for name in ("forked", "here"):
        (tmp_path / name).mkdir()
    run(study, tmp_path / "forked")
    run(study, tmp_path / "here", Inline)
    here = rows(tmp_path / "here")
    assert same(here) == same(rows(tmp_path / "forked"))
    assert sorted(row.status for row in here) == sorted(["ok", "ok", "failed", "unsupported", "wrong"] * 2)
    assert "RuntimeError: this stub raises" in capfd.readouterr().err
    failed = next(row.id for row in here if row.status == "failed")
    assert (
        "RuntimeError: this stub raises" in (tmp_path / "here" / "out" / "logs" / f"{failed}.log").read_text()
    )


def test_layers_have_no_times_where_none_are_asked_for(tmp_path: Path) -> None:
    times = {}
    for repeats in (1, 0):
        folder = tmp_path / str(repeats)
        folder.mkdir()
        run(study_of("batch = [1]").with_measure(layer_repeats=repeats), folder, Inline)
        (found,) = rows(folder)
        assert found.status == "ok" and found.measure["layer_repeats"] == repeats
        times[repeats] = [layer.get("latency_s") for layer in found.layers]
    assert times == {1: [0.001], 0: [None]}


def test_a_step_runs_in_the_sweeps_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    build = StubModel.build

    def watched(model: StubModel, *arguments: object) -> object:
        pids.append(os.getpid())
        return build(model, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(StubModel, "build", watched)
    run(study_of("batch = [1]"), tmp_path, Inline)
    assert pids == [os.getpid()]
    assert [row.status for row in rows(tmp_path)] == ["ok"]


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of('model = [{name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0, 3.0]}]')
    build = StubModel.build

    def interrupted(model: StubModel, *arguments: object) -> object:
        if model.factor == 3.0:
            raise KeyboardInterrupt
        return build(model, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StubModel, "build", interrupted)
        run(study, tmp_path, Inline)
    before = len(rows(tmp_path))
    assert run(study, tmp_path, Inline).kept.total() == before
    assert [row.status for row in rows(tmp_path)] == ["ok"] * 3


SEARCHES = """
name = "s"
[axes]
dataset = ["tests.fixtures.stubs:StubDataset"]
model = [{ name = "tests.fixtures.tiled:OneConvolution", filters = [4, 8] }]
algorithm = ["tests.fixtures.tiled:Tiled"]
compiler = ["untuned", { name = "metaschedule", trials = 2 }]
[measure]
repeats = 3
seconds = 1
"""


@pytest.mark.slow
def test_a_search_works_after_kernels_have_run_in_its_process(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(SEARCHES)
    ran = dlas(tmp_path, "run", "study.toml", "--out", "out", "--in-process")
    assert "rows written: 4 ok" in ran.stdout, ran.stdout + ran.stderr
