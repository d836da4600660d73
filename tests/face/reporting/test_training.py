"""What a report shows of training steps: batch sizes, and predictors of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import dlas
from dlas.errors import InputError
from dlas.stack import Layer
from tests.fixtures.rows import write
from tests.fixtures.training_rows import BATCHES, LEVELS, WIDTHS, operators, training_row, training_rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("training"), list(training_rows()))


@pytest.mark.slow
def test_latency_and_memory_are_drawn_by_batch_size(rows: Path, tmp_path: Path) -> None:
    dlas.report(rows, tmp_path / "report.html", files=True)
    files = {path.name for path in (tmp_path / "report_files").rglob("*.svg")}
    for figure in ("latency-by-batch", "memory-by-batch"):
        assert any(name.startswith(figure) for name in files), files
    page = (tmp_path / "report.html").read_text()
    assert "A straight line through the points of a network is off by" in page
    assert page.count('"batch"') or str(BATCHES[-1]) in page


@pytest.mark.slow
def test_operators_are_drawn_by_class(rows: Path, tmp_path: Path) -> None:
    timed: list[Layer] = [
        {**layer, "latency_s": 1e-4, "backward_s": 3e-4 if layer["operator"] == "Conv" else 0.0}
        for layer in operators(WIDTHS["narrow"], 2)
    ]
    write(tmp_path / "timed", [dataclasses.replace(training_row("narrow", 0.0, 2), layers=timed)])
    dlas.report(tmp_path / "timed", tmp_path / "report.html", files=True)
    page = (tmp_path / "report.html").read_text()
    # Three convolutions of seven operators take 12 of 16 parts of the time.
    assert "On average conv takes 75 % of the operators&#39; time" in page
    assert "conv, backward: 56.2%" in page and "linear, forward: 6.3%" in page
    files = {path.name for path in (tmp_path / "report_files").rglob("*.svg")}
    assert any(name.startswith("operators") for name in files), files


@pytest.mark.slow
def test_a_predictor_is_shown_with_its_errors_by_group(rows: Path, tmp_path: Path) -> None:
    dlas.fit("additive", rows, target="latency_s", to=tmp_path / "p", hold_out="compression.level")
    dlas.report(rows, tmp_path / "report.html", predictors=[tmp_path / "p"])
    page = (tmp_path / "report.html").read_text()
    assert "additive predicts latency on Imaginary 9000" in page
    assert "too few groups were held out for an interval" in page
    for level in LEVELS:
        assert f"compression.level={level:g}" in page
    for text in ("noise floor", "nearest", "Predicted latency", "Features that matter", *WIDTHS):
        assert text in page, text


def test_what_is_no_predictor_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no predictor"):
        dlas.report(rows, tmp_path / "report.html", predictors=[rows])
    assert not (tmp_path / "report.html").exists()
