"""Tables, comparisons and reports from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlas
from dlas.errors import InputError
from dlas.face.exports import EXPORTS
from tests.fixtures.printing import printed
from tests.fixtures.rows import failing, row, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runtimes = [row(2, algorithm="library", compiler=name) for name in ("onnxruntime", "torch_eager")]
    layers = [{"name": "conv1", "latency_s": 4e-3, "h": 8, "c": 8, "algorithm": "direct", "macs": 4}]
    return write(
        tmp_path / "rows", [row(10, layers=layers), *runtimes, failing(batch=2, reason="<b>lost</b>")]
    )


def test_a_table_is_text_html_and_a_frame(folder: Path) -> None:
    view = dlas.table(folder)
    assert view.frame["compiler"].tolist() == ["onnxruntime", "torch_eager", "untuned", "untuned"]
    assert view.frame["relative"].round(1).fillna(-1).tolist() == [1, 1, 0.2, -1]
    text, page = str(view), view._repr_html_()
    assert "onnxruntime" in text and "made-up: 4 points" in text and repr(view) == text
    assert page.startswith("<pre") and "onnxruntime" in page and "color: #008000" in page
    assert "<b>" not in page and "&lt;b&gt;lost" in page, "text of rows is no markup"
    assert "left out" not in text and "left out" in printed(view, width=40, terminal=True)
    slow = dlas.table(dlas.read(folder), where="compiler=torch_*").frame
    assert slow["compiler"].tolist() == ["torch_eager"]


def test_a_comparison_is_a_frame_of_speedups(folder: Path) -> None:
    view = dlas.compare(folder, "compiler", baseline="untuned")
    frame = view.frame[view.frame["matched"]].set_index("compiler")
    assert frame["speedup"]["onnxruntime"] == pytest.approx(5, rel=0.05)
    assert frame["speedup_low"]["onnxruntime"] < 5.1 and not frame["tie"]["onnxruntime"]
    assert frame["speedup"].isna()["untuned"]
    assert (frame["algorithm"]["onnxruntime"], frame["batch"]["onnxruntime"]) == ("direct", "1")
    assert "speed" in str(view)
    with pytest.raises(InputError, match="did you mean 'compiler'"):
        dlas.compare(folder, "compilr")


@pytest.mark.slow
def test_observations_choices_and_the_report(folder: Path, tmp_path: Path) -> None:
    found = dlas.observations(folder)
    assert found.frame["observation"].nunique() == 13 and set(found.frame["verdict"]) == {"not enough data"}
    assert "not enough data" in found._repr_html_()
    chosen = dlas.choose(folder, to=tmp_path / "choices.toml")
    assert chosen.frame[["layer", "chosen"]].to_numpy().tolist() == [["conv1", "direct"]]
    assert "conv1" in (tmp_path / "choices.toml").read_text()
    page = dlas.report(folder, where="status=ok")
    assert page == folder / "report.html" and "onnxruntime" in page.read_text()


def test_everything_is_exported(folder: Path, tmp_path: Path) -> None:
    assert set(EXPORTS) <= set(dir(dlas)) and all(callable(getattr(dlas, name)) for name in EXPORTS)
    written = dlas.export(dlas.compare(folder, "compiler").frame, tmp_path / "speedups.csv")
    assert written.read_text().startswith("group,")
