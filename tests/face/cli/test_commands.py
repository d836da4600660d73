"""The command line as a person meets it: in a process of its own where that is the point."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command as main_command

from dlas.face.cli.app import app
from tests.fixtures.commands import STUBS, Command, dlas

DEBUGGED = """
from dataclasses import dataclass
from tests.fixtures.stubs import StubModel

@dataclass(frozen=True)
class Debugged(StubModel):
    def build(self, data, workspace):
        breakpoint()
        return super().build(data, workspace)
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUBS)
    return path


@pytest.mark.slow
def test_run_table_compare_show_export(tmp_path: Path, study: Path, dlas_here: Command) -> None:
    ran = dlas(tmp_path, "run", "study.toml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    assert "s: 3 points" in ran.stdout
    assert "rows written: 1 failed, 2 ok; kept from before: 0; measured: 2" in ran.stdout
    again = dlas(tmp_path, "run", "study.toml", "--out", "out")
    assert "rows written: none; kept from before: 3; measured: 0" in again.stdout
    retried = dlas(tmp_path, "run", "study.toml", "--out", "out", "--retry", "failed")
    assert "rows written: 1 failed; kept from before: 2; measured: 0" in retried.stdout
    table = dlas(tmp_path, "table", "out")
    assert table.returncode == 0, table.stderr
    assert "this stub raises" in table.stdout
    compared = dlas_here("compare", "out", "--axis", "compiler")
    assert compared.returncode == 0, compared.stderr
    row = (tmp_path / "out" / "results.jsonl").read_text().partition('"id":"')[2][:8]
    shown = dlas_here("show", "out", row)
    assert shown.returncode == 0, shown.stderr
    assert row in shown.stdout
    for name in ("rows.csv", "rows.parquet"):
        written = dlas_here("export", "out", "--to", name)
        assert written.returncode == 0, written.stderr
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.slow
def test_a_step_can_be_debugged_in_process(tmp_path: Path, study: Path) -> None:
    study.write_text(STUBS.replace("tests.fixtures.stubs:StubModel", "debugged:Debugged"))
    (tmp_path / "debugged.py").write_text(DEBUGGED)
    ran = dlas(tmp_path, "run", "study.toml", "--out", "out", "--in-process", typed="p data.shape\nc\n")
    assert ran.returncode == 0, ran.stderr
    assert "all steps run in this process: no limit of time or memory holds" in ran.stdout
    assert "(Pdb) (1, 2, 2)" in ran.stdout
    assert "RuntimeError: this stub raises" in ran.stderr
    assert "rows written: 1 failed, 2 ok" in ran.stdout
    (tmp_path / "cache" / "network").rename(tmp_path / "away")
    left = dlas(tmp_path, "run", "study.toml", "--out", "again", "--in-process", typed="q\n")
    assert left.returncode == 130
    assert "`dlas run again` goes on" in left.stdout


def test_help_shows_every_word_of_its_texts(dlas_here: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    commands = main_command(app).commands  # type: ignore[attr-defined]
    assert len(commands) > 15
    for name, command in commands.items():
        shown = set(dlas_here(name, "--help").stdout.split())
        texts = [getattr(parameter, "help", None) or "" for parameter in command.params]
        for word in " ".join([command.help or "", *texts]).replace("\\[", "[").split():
            assert word in shown, f"dlas {name} --help does not say {word!r}"
    assert "from [sample] axes" in dlas_here("run", "--help").stdout


def damaged(tmp_path: Path) -> str:
    (tmp_path / "bad.safetensors").write_bytes(b"not weights")
    return str(tmp_path / "bad.safetensors")


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ('dataset = [{name = "cifar10", root = "nowhere"}]', "nowhere"),
        ('model = [{name = "resnet18", weights = "nowhere.safetensors"}]', "nowhere.safetensors"),
        ('model = [{name = "resnet18", weights = "bad.safetensors"}]', "bad.safetensors"),
        ('model = [{name = "onnx", path = "nowhere.onnx"}]', "nowhere.onnx"),
        ('model = [{name = "onnx", path = "escape.onnx"}]', "escape.onnx"),
        ('model = [{name = "onnx", path = "zero.onnx"}]', "has the scale 0; scales are positive"),
        ('hardware = [{name = "local_cpu", threads = 4096}]', "4096"),
        ('hardware = ["nowhere.toml"]', "nowhere.toml"),
        ('compiler = ["untunde"]', "did you mean 'untuned'"),
        ('algorithm = ["per_layer"]', "per_layer needs a table"),
        ('algorithm = [{name = "per_layer", path = "nowhere.toml"}]', "nowhere.toml"),
        ('algorithm = [{name = "per_layer", path = "study.toml"}]', "unknown key 'name'"),
    ],
)
def test_bad_input_is_one_message_exit_code_2_and_nothing_written(
    tmp_path: Path, dlas_here: Command, axes: str, said: str
) -> None:
    damaged(tmp_path)
    escaping_onnx(tmp_path)
    quantised_by_zero(tmp_path)
    (tmp_path / "study.toml").write_text(f'name = "s"\n[axes]\n{axes}\n')
    before = sorted(tmp_path.rglob("*"))
    refused = dlas_here("run", "study.toml", "--out", "out")
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr
    assert len(refused.stderr.splitlines()) <= 3
    assert sorted(tmp_path.rglob("*")) == before


def quantised_by_zero(tmp_path: Path) -> None:
    """Write a quantised model with a scale of zero."""
    from tests.fixtures.quantised_graphs import QuantisedGraph

    graph = QuantisedGraph((1, 4, 6, 6))
    model = graph.model(graph.quantised("x", (0.0, 3)))
    (tmp_path / "zero.onnx").write_bytes(model.SerializeToString())


def escaping_onnx(tmp_path: Path) -> None:
    """Write a model whose weights lie outside its own folder."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    weight = numpy_helper.from_array(np.zeros((4, 3, 1, 1), np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../../etc/passwd")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", 1, [1, 4, 8, 8])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    (tmp_path / "escape.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nothing.toml", "--out", "out"], "nothing.toml"),
        (["run", "study.toml"], "--out"),
        (["run", "study.toml", "--out", "out", "--retry", "faild"], "did you mean 'failed'"),
        (["run", "study.toml", "--out", "out", "--jobs", "0"], "jobs"),
        (["run", "study.toml", "--out", "out", "--jobs", "2", "--in-process"], "one step at a time"),
        (["list", "compilr"], "did you mean 'compiler'"),
        (["table", "nowhere"], "nowhere"),
        (["compare", "nowhere", "--axis", "compiler"], "nowhere"),
        (["show", "nowhere", "abc"], "nowhere"),
        (["export", "nowhere", "--to", "rows.csv"], "nowhere"),
        (["tabel"], "tabel"),
    ],
)
def test_wrong_words_end_in_exit_code_2(
    tmp_path: Path, study: Path, dlas_here: Command, words: list[str], said: str
) -> None:
    refused = dlas_here(*words)
    assert refused.returncode == 2, refused.stderr
    assert said in refused.stderr
    assert not (tmp_path / "out").exists()
