"""Break-even: where a sparse algorithm is as fast as dense code, and the report's section on it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.break_even import SpeedCurve, crossing, curves, technique, worded
from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Absent, Figure, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import break_even
from dlas.face.tables.table import Table
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import failing, row, write


def pruned(level: float, ms: float, algorithm: str = "csr_direct", **given: Any) -> Row:
    compression = {"name": "weight_pruning", "level": level}
    return row(
        ms,
        **{
            "compression": compression,
            "reached": {"ratio": level},
            "algorithm": algorithm,
            "spread": 1e-4,
            **given,
        },
    )


def dense(ms: float = 10.0, **given: Any) -> Row:
    return row(ms, spread=1e-4, **given)


def found(folder: Path, *rows: Row) -> list[SpeedCurve]:
    return curves(with_roles(read(write(folder, rows))))


def made(folder: Path, *rows: Row) -> Section | Absent:
    points = with_roles(read(write(folder, rows)))
    return break_even.section(Context([str(folder)], points, details=read_details(points)))


def test_the_crossing_is_interpolated_linearly_in_the_logarithm() -> None:
    assert crossing([0.5, 0.7], [0.5, 2.0]) == pytest.approx(0.6)
    assert crossing([0.5, 0.8], [0.5, 4.0]) == pytest.approx(0.6)
    assert crossing([0.5, 0.7, 0.9], [0.5, 1.0, 2.0]) == pytest.approx(0.7)


def test_the_crossing_is_where_the_speedup_stays_above_1() -> None:
    assert crossing([0.5, 0.6, 0.7, 0.8], [1.1, 0.9, 0.5, 2.0]) == pytest.approx(0.75)


def test_a_curve_need_not_cross() -> None:
    levels = [0.5, 0.98]
    assert crossing(levels, [1.0, 3.0]) == -math.inf and crossing(levels, [0.2, 0.99]) == math.inf
    assert worded(-math.inf, levels) == "already at 50 %" and worded(math.inf, levels) == "not below 98 %"
    assert worded(0.574, levels) == "57 %"


def test_levels_without_a_time_are_passed_over() -> None:
    assert crossing([0.5, 0.6, 0.7], [0.5, math.nan, 2.0]) == pytest.approx(0.6)
    assert math.isnan(crossing([0.5], [math.nan])) and worded(math.nan, [0.5]) == ""


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("weight_pruning(level=0.9)", "weight_pruning"),
        ("weight_pruning(level=0.9, scope=layer)", "weight_pruning(scope=layer)"),
        ("p(criterion=random, elbow=knee, level=elbow, recipe=none)", "p(criterion=random, recipe=none)"),
        ("a(level=0.5)+b(level=0.9)", "a(level=0.5)+b"),
        ("p(level=0.5)+int8", "p+int8"),
        ("none", "none"),
    ],
)
def test_a_technique_is_a_compression_without_its_level(label: str, expected: str) -> None:
    assert technique(label) == expected


def test_the_baseline_is_the_fastest_dense_point_of_any_compiler(tmp_path: Path) -> None:
    rows = [
        dense(20),
        dense(8, algorithm="library", compiler="onnxruntime"),
        dense(1, batch=8),
        pruned(0.9, 2),
        pruned(0.5, 16),
    ]
    (curve,) = found(tmp_path, *rows)
    assert curve.ratios == [0.5, 0.9]
    assert [speed for speed, _, _ in curve.speeds] == pytest.approx([0.5, 4], rel=1e-3)
    assert all(low <= speed <= high for speed, low, high in curve.speeds)
    assert curve.break_even == pytest.approx(0.5 + 0.4 / 3, rel=1e-3) and curve.in_words == "63 %"


def test_algorithms_compilers_and_settings_have_curves_of_their_own(tmp_path: Path) -> None:
    rows = [dense(), dense(batch=8)]
    for batch, algorithm, compiler in (
        (1, "csr_direct", "hand"),
        (1, "csr_gemm", "hand"),
        (1, "csr_gemm", "untuned"),
        (8, "csr_gemm", "hand"),
    ):
        kinds = {"batch": batch, "compiler": compiler}
        rows += [pruned(level, 5, algorithm, **kinds) for level in (0.5, 0.9)]
    told = [(curve.algorithm, curve.compiler, curve.setting["batch"]) for curve in found(tmp_path, *rows)]
    assert told == [
        ("csr_direct", "hand", 1),
        ("csr_gemm", "hand", 1),
        ("csr_gemm", "hand", 8),
        ("csr_gemm", "untuned", 1),
    ]


def test_one_level_or_no_dense_time_is_no_curve(tmp_path: Path) -> None:
    assert not found(tmp_path / "one", dense(), pruned(0.9, 2))
    assert not found(tmp_path / "twice", dense(), pruned(0.9, 2), pruned(0.9, 3, seed=1))
    assert not found(tmp_path / "dense", failing(), pruned(0.5, 2), pruned(0.9, 2))
    failed = pruned(0.5, 1, status="failed")
    assert not found(tmp_path / "failed", dense(), failed, pruned(0.9, 2))


def test_a_library_on_the_pruned_network_is_the_baseline(tmp_path: Path) -> None:
    """The machine was twice as slow when the dense network was measured, and as slow as then at one level."""
    ours = [dense(16), pruned(0.5, 20), pruned(0.9, 2)]
    slow = dense(20, algorithm="library", compiler="onnxruntime")
    anchors = [pruned(level, ms, "library", compiler="onnxruntime") for level, ms in ((0.5, 20), (0.9, 10))]
    (curve,) = found(tmp_path, *ours, slow, *anchors)
    assert curve.algorithm == "csr_direct"
    assert [speed for speed, _, _ in curve.speeds] == pytest.approx([16 / 20, 16 / 20 * 10 / 2], rel=1e-3)


def test_an_elbow_at_a_measured_level_is_that_level(tmp_path: Path) -> None:
    elbow = pruned(0.9, 3, compression={"name": "weight_pruning", "level": "elbow"})
    (curve,) = found(tmp_path, dense(), pruned(0.5, 20), pruned(0.9, 2), elbow)
    assert curve.ratios == [0.5, 0.9] and curve.speeds[-1][0] == pytest.approx(5, rel=1e-3)


def test_the_section_draws_lines_and_rings(tmp_path: Path) -> None:
    rows = [
        dense(),
        *(pruned(level, ms) for level, ms in ((0.5, 20), (0.9, 5))),
        *(pruned(level, 30, "csr_gemm") for level in (0.5, 0.9)),
    ]
    section = made(tmp_path, *rows)
    assert isinstance(section, Section)
    figure, table = section.blocks
    assert isinstance(figure, Figure) and isinstance(table, Table)
    (panel,) = figure.panels
    rings = [mark for mark in panel.rows if mark["e"]]
    assert [(mark["c"], mark["y"]) for mark in rings] == [("csr_direct", 1)]
    assert rings[0]["x"] == pytest.approx(70, rel=1e-3)
    assert sorted(mark["x"] for mark in panel.rows if not mark["e"]) == [50, 50, 90, 90]
    assert {mark["d"] for mark in panel.rows} == {"0", "1"}
    assert "1 of 2 lines cross it, 0 lie above" in figure.sentence
    cells = [[cell.plain for cell in line.cells] for line in table.lines]
    assert [line[2:6] for line in cells] == [
        ["csr_direct", "untuned", "70 %", "90 %"],
        ["csr_gemm", "untuned", "not below 90 %", "90 %"],
    ]
    assert cells[0][7] == "direct under untuned"


def test_without_levels_the_section_says_what_it_needs(tmp_path: Path) -> None:
    absent = made(tmp_path, dense(), pruned(0.9, 2))
    assert isinstance(absent, Absent) and "several levels" in absent.needs
