"""Reasons that differ in a factor alone are told once."""

from __future__ import annotations

from pathlib import Path

from dlas.analysis.compare import compare
from dlas.face.reporting import report
from dlas.face.tables.comparison import grid
from dlas.face.tables.points import table
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.reasons import alike
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write

MEDIANS = "the medians of its slices differ by a factor of"


def test_reasons_that_differ_in_a_factor_are_one_with_the_least_and_the_largest() -> None:
    assert alike([f"{MEDIANS} 2.1", f"{MEDIANS} 1.2e+02", f"{MEDIANS} 9", "crashed with 3"]) == {
        **{f"{MEDIANS} {factor}": f"{MEDIANS} 2.1 to 120" for factor in ("2.1", "1.2e+02", "9")},
        "crashed with 3": "crashed with 3",
    }
    assert alike([f"{MEDIANS} 2.1"]) == {f"{MEDIANS} 2.1": f"{MEDIANS} 2.1"}


def test_tables_and_the_report_tell_unstable_points_by_one_reason(tmp_path: Path) -> None:
    factors = {"direct": "2.1", "gemm": "1.2e+02", "winograd": "9"}
    rows = [
        row(5, algorithm=name, status="unstable", reason=f"{MEDIANS} {each}")
        for name, each in factors.items()
    ]
    folder = write(tmp_path, rows)
    for text in (printed(table(read(folder))), printed(grid(compare(read(folder), "algorithm")))):
        assert f"(1) unstable, 3 points: {MEDIANS} 2.1 to 120" in text and "(2)" not in text
    report([folder], folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"The most frequent reason, 3 times: {MEDIANS} 2.1 to 120" in page
    assert f"dlas run {folder} --retry unstable" in page and "1.2e+02" not in page.partition('id="matrix"')[0]


def test_a_single_reason_is_not_called_frequent(tmp_path: Path) -> None:
    bad = [row(5, algorithm="gemm", status="unstable", reason=f"{MEDIANS} 3")]
    folder = write(tmp_path, [row(9), *bad])
    report([folder], folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"The reason: {MEDIANS} 3" in page and "1 times" not in page


def test_tuned_code_without_a_partner_is_told_so_and_not_as_a_mean_of_nothing(tmp_path: Path) -> None:
    tuned = {"name": "metaschedule", "trials": 8}
    folder = write(tmp_path, [row(9, status="unstable", reason=f"{MEDIANS} 3"), row(5, compiler=tuned)])
    report([folder], folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Nothing is matched: no two points" in page and "the 0 points" not in page
