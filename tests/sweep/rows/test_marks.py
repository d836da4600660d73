"""Marks beside times: how much of a network the algorithm computes, and which way a ratio counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.compare import compare
from dlas.analysis.options import paired_by_part, settings_by_part
from dlas.analysis.roles import with_roles
from dlas.face.reporting import report
from dlas.face.tables.comparison import grid
from dlas.face.tables.points import table
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import PARTLY_MEANS, coverage_mark
from tests.fixtures.printing import printed
from tests.fixtures.rows import row, write

THIRD: dict[str, Any] = {"algorithm": "winograd", "coverage": {"convolutions": 1 / 3, "macs": 0.33}}
TUNED = {"name": "metaschedule", "trials": 8}


def of_report(folder: Path) -> str:
    report([folder], folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("share", "mark"),
    [
        (1.0, ""),
        (None, ""),
        (float("nan"), ""),
        (0.999, " †99%"),
        (0.33, " †33%"),
        (1e-4, " †<1%"),
        (0.0, " †<1%"),
    ],
)
def test_a_mark_says_how_much_an_algorithm_computes(share: float | None, mark: str) -> None:
    assert coverage_mark(share) == mark


def test_partial_coverage_is_marked_and_explained_once(tmp_path: Path) -> None:
    folder = write(tmp_path, [row(20), row(19.2, spread=0.0, **THIRD)])
    for text in (printed(table(read(folder))), printed(grid(compare(read(folder), "algorithm")))):
        assert len(re.findall(r"\] †33%", text.replace(PARTLY_MEANS, ""))) == 1
        assert text.count(PARTLY_MEANS) == 1 and text.index("] †33%") < text.index(PARTLY_MEANS)
    page = of_report(folder)
    matrix = page.partition('id="matrix"')[2].partition("</table>")[0]
    assert "19.20 †33%" in matrix and matrix.count("†33%") == 1
    assert PARTLY_MEANS.replace("'", "&#39;") in page


def test_without_partial_coverage_nothing_is_marked(tmp_path: Path) -> None:
    folder = write(tmp_path, [row(20), row(10, algorithm="gemm"), row(5, algorithm="library", coverage=None)])
    for text in (printed(table(read(folder))), printed(grid(compare(read(folder), "algorithm")))):
        assert "†" not in text
    assert "†" not in of_report(folder).partition("<main")[2].partition("</main>")[0]


def test_more_is_faster_wherever_speeds_are_compared(tmp_path: Path) -> None:
    """The slower point has the smaller number in the table and in the comparison, each under its words."""
    folder = write(tmp_path, [row(20), row(5, algorithm="gemm", spread=0.0)])
    listed = printed(table(read(folder)), 200)
    assert "times as fast" in listed and "as the fastest" in listed
    (slower,) = [line for line in listed.split("\n") if line.startswith("direct")]
    assert " 0.25" in slower
    compared = printed(grid(compare(read(folder), "algorithm", "gemm")), 200)
    assert "times as fast" in compared and "0.25" in compared
    for text in (listed, compared):
        assert not re.search(r"\d\.?\d*x\b", text)


def test_settings_that_differ_in_one_option_are_told_with_the_fastest(tmp_path: Path) -> None:
    half = {"name": "cifar_resnet18", "width": 0.5}
    folder = write(tmp_path, [row(20), row(5, model=half), row(7, model=half, algorithm="gemm")])
    (found,) = settings_by_part(with_roles(read(folder)))
    assert found.options == {"model": ["cifar_resnet18", "cifar_resnet18(width=0.5)"]}
    assert found.best.points[0] == 1
    assert "differ in options only are compared apart: model cifar_resnet18, cifar_resnet18(width=0.5)" in (
        of_report(folder)
    )
    assert settings_by_part(with_roles(read(write(tmp_path / "b", [row(), row(model="cifar_vgg16")])))) == []


def test_tuned_and_untuned_points_of_other_options_are_paired_by_their_part(tmp_path: Path) -> None:
    small, large = ({"name": "winograd", "tile": tile} for tile in (2, 4))
    rows = [
        row(20, algorithm=small),
        row(5, algorithm=large, compiler=TUNED),
        row(8, algorithm="gemm"),
        row(4, algorithm="gemm", compiler=TUNED),
    ]
    folder = write(tmp_path, rows)
    points = with_roles(read(folder))
    kinds = points["tuning"]
    pairs = paired_by_part(points, kinds == "untuned", kinds == "tuned", "compiler")
    assert pairs["algorithm_name"].tolist() == ["winograd"]
    assert pairs["ratio"].tolist() == [pytest.approx(4, rel=0.02)]
    page = of_report(folder)
    assert "different options only" in page and "winograd(tile=4) against winograd(tile=2)" in page
