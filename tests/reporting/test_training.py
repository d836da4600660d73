"""What a report shows of training steps: batch sizes, and predictors of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlas
from dlas.errors import InputError
from tests.fixtures.rows import write
from tests.fixtures.training_rows import BATCHES, LEVELS, WIDTHS, training_rows


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("training"), list(training_rows()))


def test_latency_and_memory_are_drawn_by_batch_size(rows: Path, tmp_path: Path) -> None:
    dlas.report(rows, tmp_path / "report.html", files=True)
    files = {path.name for path in (tmp_path / "report_files").rglob("*.svg")}
    for figure in ("latency-by-batch", "memory-by-batch"):
        assert any(name.startswith(figure) for name in files), files
    page = (tmp_path / "report.html").read_text()
    assert "A straight line through the points of a network is off by" in page
    assert page.count('"batch"') or str(BATCHES[-1]) in page


def test_a_predictor_is_shown_with_its_errors_by_group(rows: Path, tmp_path: Path) -> None:
    dlas.fit("additive", rows, target="latency_s", to=tmp_path / "p", hold_out="compression.level")
    dlas.report(rows, tmp_path / "report.html", predictors=[tmp_path / "p"])
    page = (tmp_path / "report.html").read_text()
    assert "additive: latency_s on Imaginary 9000" in page
    assert "Too few groups were held out for an interval" in page
    for level in LEVELS:
        assert f"compression.level={level:g}" in page
    for text in ("noise floor", "nearest", "Predicted latency", "Features that matter", *WIDTHS):
        assert text in page, text


def test_what_is_no_predictor_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no predictor"):
        dlas.report(rows, tmp_path / "report.html", predictors=[rows])
    assert not (tmp_path / "report.html").exists()
