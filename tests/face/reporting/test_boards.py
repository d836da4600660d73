"""Sections of the report on boards alike and on clocks."""

from __future__ import annotations

from pathlib import Path

from dlas.face.reporting import context_of
from dlas.face.reporting.blocks import Absent, Figure, Section
from dlas.face.reporting.sections import clocks, variability
from dlas.sweep.rows.results import Row
from tests.fixtures.board_rows import board_folders
from tests.fixtures.rows import row, write


def figures_of(section: Section | Absent) -> dict[str, Figure]:
    assert isinstance(section, Section)
    return {block.name: block for block in section.blocks if isinstance(block, Figure)}


def test_boards_have_a_box_each(tmp_path: Path) -> None:
    folders = board_folders(tmp_path, {"b1": 1.0, "b2": 1.0, "b3": 1.05})
    figures = figures_of(variability.section(context_of(folders)))
    assert list(figures) == ["boards-latency", "within-boards-latency"]
    (panel, *_) = figures["boards-latency"].panels
    middles = {mark["y"]: mark["x"] for mark in panel.rows}
    assert middles["b3"] > 3 and set(middles) == {"b1", "b2", "b3"}
    assert all(mark["lo"] <= mark["q1"] <= mark["x"] <= mark["q3"] <= mark["hi"] for mark in panel.rows)


def test_energy_has_boxes_where_rows_have_it(tmp_path: Path) -> None:
    folders = board_folders(tmp_path, {"b1": 1.0, "b2": 1.0}, energy_j=0.5)
    assert "boards-energy" in figures_of(variability.section(context_of(folders)))


def test_runs_on_one_machine_are_no_boards(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, [row(10), row(20, batch=8)]) for name in ("a", "b")]
    assert isinstance(variability.section(context_of(folders)), Absent)


def at(ms: float, model: str = "a", energy_j: float | None = None, **asked_hz: float) -> Row:
    return row(ms, model=model, hardware={"name": "local_cpu", **asked_hz}, energy_j=energy_j)


def test_one_clock_is_drawn_in_gigahertz(tmp_path: Path) -> None:
    rows = [at(10 / ghz, model, cpu_hz=ghz * 1e9) for ghz in (2.0, 0.5, 1.0) for model in ("a", "b")]
    figures = figures_of(clocks.section(context_of([write(tmp_path, rows)])))
    assert list(figures) == ["latency-by-clock"]
    (panel,) = figures["latency-by-clock"].panels
    assert [mark["x"] for mark in panel.rows if mark["c"] == "a"] == [0.5, 1, 2]
    assert "up to 4" in figures["latency-by-clock"].sentence


def test_several_clocks_are_numbered_and_energy_is_drawn(tmp_path: Path) -> None:
    rows = [
        at(10 / cpu + 1 / gpu, energy_j=cpu * gpu, cpu_hz=cpu * 1e9, gpu_hz=gpu * 1e9)
        for cpu in (1, 2)
        for gpu in (0.3, 0.6)
    ]
    figures = figures_of(clocks.section(context_of([write(tmp_path, rows)])))
    assert list(figures) == ["latency-by-clock", "energy-by-clock"]
    marks = figures["energy-by-clock"].panels[0].rows
    assert [mark["x"] for mark in marks] == [1, 2, 3, 4]
    assert [mark["y"] for mark in marks] == [300, 600, 600, 1200]
    assert marks[0]["t"] == "CPU 1 GHz, GPU 0.3 GHz: 300 mJ"


def test_a_single_setting_draws_nothing(tmp_path: Path) -> None:
    assert isinstance(clocks.section(context_of([write(tmp_path, [at(10, cpu_hz=1e9)])])), Absent)
    assert isinstance(clocks.section(context_of([write(tmp_path / "plain", [row(10)])])), Absent)
