"""Paths of flexible networks: Pareto sets with intervals, what changes them, and their page and text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dlas.analysis import paths as analysis
from dlas.analysis.paths import IN, OPEN, OUT, UNKNOWN
from dlas.analysis.repeats import merge_repeats
from dlas.analysis.roles import with_roles
from dlas.axes.compression.flexible.scoring import undominated
from dlas.errors import InputError
from dlas.face.api.rows import paths
from dlas.face.reporting.blocks import Absent, Figure, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.paths import section
from dlas.face.tables.table import Table
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.results import Row
from tests.fixtures.commands import Command
from tests.fixtures.flexible import path_row
from tests.fixtures.rows import CPU, row, write

MACS = {"00": 400, "01": 300, "10": 200, "11": 100}


def rows(times: Mapping[str, float], accuracies: Mapping[str, float | None], **given: Any) -> list[Row]:
    return [path_row(path, ms, accuracies[path], MACS[path], **given) for path, ms in times.items()]


ACCURATE = {"00": 0.95, "01": 0.93, "10": 0.90, "11": 0.80}
UNTRAINED: dict[str, float | None] = dict.fromkeys(MACS)


def found(folder: Path, given: list[Row]) -> pd.DataFrame:
    return analysis.paths_of(merge_repeats(read(write(folder, given))).reset_index(drop=True))


def members(frame: pd.DataFrame) -> dict[str, str]:
    return dict(zip(frame["path"], frame["member"], strict=True))


def test_a_path_is_out_where_a_better_one_is_surely_faster(tmp_path: Path) -> None:
    frame = found(tmp_path, rows({"00": 10, "01": 5, "10": 8, "11": 2}, ACCURATE))
    assert members(frame) == {"00": IN, "01": IN, "10": OUT, "11": IN}
    assert frame["by_macs"].all(), "each has fewer multiply-adds than all that are more accurate"


def test_where_intervals_overlap_a_path_is_open(tmp_path: Path) -> None:
    frame = found(tmp_path, rows({"00": 10, "01": 5, "10": 5.01, "11": 2}, ACCURATE, spread=0.05))
    assert members(frame) == {"00": IN, "01": IN, "10": OPEN, "11": IN}


def test_without_an_accuracy_a_path_is_in_no_set(tmp_path: Path) -> None:
    given = rows({"00": 10, "01": 5, "10": 12, "11": 6}, UNTRAINED)
    frame = found(tmp_path / "none", [*given, *rows({"00": 10, "01": 5}, UNTRAINED, batch=8)])
    assert set(frame["member"]) == {UNKNOWN} and not frame["by_macs"].any()
    assert analysis.changes(frame).empty
    first = analysis.places(frame).iloc[0]
    assert first["by_latency"] == first["open"] == first["by_macs"] == ()
    assert first["without_accuracy"] == 4 and first["speedup"] == pytest.approx(2, rel=0.05)
    some = found(tmp_path / "some", rows({"00": 10, "01": 5, "10": 8}, {**ACCURATE, "01": None}))
    assert members(some) == {"00": IN, "01": UNKNOWN, "10": IN}


def test_the_command_says_that_there_is_no_set_without_accuracies(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "rows", rows({"00": 10, "01": 5, "10": 8, "11": 2}, UNTRAINED))
    printed = dlas_here("paths", "rows")
    assert printed.returncode == 0, printed.stderr
    text = " ".join(printed.stdout.split())
    assert "No path has an accuracy, without which none is in a Pareto set: the network is untrained" in text
    assert "11 01 10 00" not in text


def test_the_set_by_multiply_adds_is_that_of_the_compression(tmp_path: Path) -> None:
    accuracies = {"00": 0.90, "01": 0.95, "10": 0.80, "11": 0.80}
    frame = found(tmp_path, rows(dict.fromkeys(MACS, 1.0), accuracies))
    assert set(frame.loc[frame["by_macs"], "path"]) == set(undominated(accuracies, MACS)) == {"01", "11"}


def test_rows_without_a_path_and_all_paths_are_left_out(tmp_path: Path) -> None:
    others = [row(3), path_row("all", 3, 0.9)]
    frame = found(tmp_path / "a", [*others, *rows({"00": 10}, ACCURATE)])
    assert list(frame["path"]) == ["00"]
    assert found(tmp_path / "b", [row(3)]).empty
    with pytest.raises(InputError, match="no row is a timed path of a flexible network"):
        paths(tmp_path / "b")


def sweep() -> list[Row]:
    """Return rows in which 10 enters at batch 8, and nothing changes along the threads."""
    first = {"00": 10, "01": 5, "10": 8, "11": 2}
    second = {"00": 80, "01": 40, "10": 20, "11": 16}
    one, two = ({"name": "local_cpu", "threads": threads} for threads in (1, 2))
    return [
        *rows(first, ACCURATE, batch=1, hardware=one),
        *rows({path: ms / 1.5 for path, ms in first.items()}, ACCURATE, batch=1, hardware=two),
        *rows(second, ACCURATE, batch=8, hardware=one),
    ]


def test_paths_enter_and_leave_between_places_that_differ_in_one_thing(tmp_path: Path) -> None:
    changed = analysis.changes(found(tmp_path, sweep()))
    assert list(changed["along"]) == ["batch", "hardware"]
    batch, hardware = changed.to_dict("records")
    assert (batch["first"], batch["second"], batch["enter"], batch["leave"]) == (1, 8, ("10",), ())
    assert (hardware["enter"], hardware["leave"], hardware["open"]) == ((), (), 0)


def test_noise_is_not_called_a_change(tmp_path: Path) -> None:
    near = {"00": 10, "01": 5, "10": 4.99, "11": 2}
    away = {"00": 10, "01": 5, "10": 5.01, "11": 2}
    given = [*rows(near, ACCURATE, batch=1, spread=0.05), *rows(away, ACCURATE, batch=2, spread=0.05)]
    (change,) = analysis.changes(found(tmp_path, given)).to_dict("records")
    assert (change["enter"], change["leave"], change["open"]) == ((), (), 1)


def test_places_tell_sets_and_how_multiply_adds_and_latency_go_together(tmp_path: Path) -> None:
    places = analysis.places(found(tmp_path, sweep()))
    assert list(places["batch"]) == [1, 8, 1]
    first = places.iloc[0]
    assert first["by_latency"] == ("11", "01", "00") and first["open"] == ()
    assert first["speedup"] == pytest.approx(5, rel=0.05) and first["macs_share"] == 0.25
    assert -1 <= first["low"] <= first["correlation"] <= first["high"] <= 1
    few = analysis.places(found(tmp_path / "few", rows({"00": 10, "01": 5}, ACCURATE)))
    assert np.isnan(few.iloc[0]["correlation"])


def test_the_command_prints_sets_and_changes(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "rows", sweep())
    printed = dlas_here("paths", "rows")
    assert printed.returncode == 0, printed.stderr
    assert "11 01 00" in printed.stdout and "between places" in printed.stdout
    assert re.search(r"^batch: 1 to 8 +local_cpu\(threads=1\) +10 ", printed.stdout, re.MULTILINE)
    assert re.search(rf"^hardware: .* to .* batch 1 +{MISSING} +{MISSING} +\d$", printed.stdout, re.MULTILINE)
    refused = dlas_here("paths", "rows", "--where", "compression=none")
    assert refused.returncode == 2
    view = paths(tmp_path / "rows", where="batch=8")
    assert list(view.frame["by_latency"]) == [("11", "10", "01", "00")]
    assert "11 10 01 00" in str(view)


def test_compilers_are_compared_with_runtimes_that_have_no_algorithm(tmp_path: Path) -> None:
    first, second = {"00": 10, "01": 5, "10": 8, "11": 2}, {"00": 10, "01": 5, "10": 4, "11": 2}
    given = [
        *rows(first, ACCURATE, compiler="hand", algorithm="direct"),
        *rows(first, ACCURATE, compiler="untuned", algorithm="direct"),
        *rows(first, ACCURATE, compiler="untuned", algorithm="gemm"),
        *rows(second, ACCURATE, compiler="onnxruntime", algorithm="library"),
    ]
    changed = analysis.changes(found(tmp_path, given))
    compared = {(line["first"], line["second"]): line for line in changed.to_dict("records")}
    assert set(compared) == {
        ("direct", "gemm"),
        ("hand", "untuned"),
        ("hand with direct", "onnxruntime"),
        ("onnxruntime", "untuned with direct"),
        ("onnxruntime", "untuned with gemm"),
    }
    runtime = compared["hand with direct", "onnxruntime"]
    assert (runtime["along"], runtime["enter"], runtime["leave"]) == ("compiler", ("10",), ())
    assert runtime["compiler"] is None and runtime["algorithm"] is None
    assert compared["hand", "untuned"]["algorithm"] == "direct"


def test_devices_in_different_machines_are_compared(tmp_path: Path) -> None:
    first, second = {"00": 10, "01": 5, "10": 8, "11": 2}, {"00": 10, "01": 5, "10": 4, "11": 2}
    one, two = ({"name": "local_cpu", "threads": threads} for threads in (1, 2))
    board = {"name": "board", "title": "A board"}
    here = [*rows(first, ACCURATE, hardware=one), *rows(first, ACCURATE, hardware=two)]
    there = [
        *rows(second, ACCURATE, hardware=two, device={**CPU, "cpu": "Real 1"}),
        *rows(second, ACCURATE, hardware="board", device=board),
    ]
    folders = [write(tmp_path / "here", here), write(tmp_path / "there", there)]
    frame = analysis.paths_of(merge_repeats(read(folders)).reset_index(drop=True))
    changed = analysis.changes(frame)
    assert set(changed["along"]) == {"hardware"}
    ends = changed[["first", "second"]].map(lambda name: name.replace(", 2 cores, otherwise unknown", ""))
    found_between = dict(zip(ends.itertuples(index=False, name=None), changed["enter"], strict=True))
    single, double = (f"local_cpu(threads={threads}) on Imaginary 9000" for threads in (1, 2))
    elsewhere = "local_cpu(threads=2) on Real 1"
    assert found_between == {
        (single, double): (),
        (double, elsewhere): ("10",),
        ("board", single): (),
        ("board", double): (),
        ("board", elsewhere): (),
    }
    left = dict(zip(ends.itertuples(index=False, name=None), changed["leave"], strict=True))
    assert left["board", double] == ("10",) and left["board", elsewhere] == ()


def test_what_does_not_change_is_told_as_it_is(tmp_path: Path) -> None:
    batch, hardware = analysis.changes(found(tmp_path, sweep())).to_dict("records")
    assert batch["batch"] is None and hardware["hardware"] is None
    assert str(hardware["batch"]) == "1" and "threads=1" in batch["hardware"]


# ---------------------------------------------------------------- the report


def report_of(folder: Path, given: list[Row]) -> Section | Absent:
    return section(Context([folder.name], with_roles(read(write(folder, given)))))


def figures_of(folder: Path, given: list[Row]) -> dict[str, Figure]:
    shown = report_of(folder, given)
    assert isinstance(shown, Section)
    return {block.name: block for block in shown.blocks if isinstance(block, Figure)}


def test_the_report_has_a_section_of_paths(tmp_path: Path) -> None:
    shown = report_of(tmp_path / "paths", sweep())
    assert isinstance(shown, Section)
    *figures, table, changed = shown.blocks
    names = ["paths", "paths-normalised", "paths-by-place", "paths-beside-others"]
    assert [figure.name for figure in figures if isinstance(figure, Figure)] == names
    assert isinstance(table, Table) and len(table.lines) == 3
    assert isinstance(changed, Table)
    assert [line.cells[2].text for line in changed.lines] == ["10", MISSING]
    along_hardware = changed.lines[1]
    assert along_hardware.cells[1].text == "batch 1" and along_hardware.where["batch"] == "1"
    absent = report_of(tmp_path / "none", [row(3)])
    assert isinstance(absent, Absent) and "4 timed paths" in absent.needs


def test_latencies_are_drawn_as_shares_of_the_legacy_networks(tmp_path: Path) -> None:
    found = figures_of(tmp_path, sweep())
    for name, x, y in (("paths", 25, 20), ("paths-normalised", 20, 80)):
        assert len(found[name].panels) == 2, "one each for 1 and 2 threads"
        marks = {(mark["t"], mark["c"]): mark for panel in found[name].panels for mark in panel.rows}
        mark = marks["path 11", "batch 8"]
        assert mark["x"] == pytest.approx(x, rel=0.05) and mark["y"] == pytest.approx(y, rel=0.05)
        assert mark["f"]


def test_a_panel_of_a_place_names_the_paths_that_are_worth_taking(tmp_path: Path) -> None:
    near = {"00": 10, "01": 5, "10": 5.01, "11": 2}
    given = [*rows(near, ACCURATE, spread=0.05), row(1)]
    figure = figures_of(tmp_path, given)["paths-by-place"]
    (panel,) = figure.panels
    marks = {mark["t"]: mark for mark in panel.rows}
    assert {text: (mark["l"], mark["c"], mark["f"]) for text, mark in marks.items()} == {
        "path 00": ("00", "in the Pareto set", True),
        "path 01": ("01", "in the Pareto set", True),
        "path 10": ("10", "open", False),
        "path 11": ("11", "in the Pareto set", True),
    }
    for mark in panel.rows:
        assert mark["lo"] <= mark["x"] <= mark["hi"]
        assert mark["fy"] == (mark["y"] if mark["f"] else None)
    assert set(figure.labels) == {"in the Pareto set", "open"}


def test_paths_lie_beside_pruned_networks_and_fine_tuned_paths(tmp_path: Path) -> None:
    pruned = {"name": "compact_channel_pruning", "level": 0.5}
    sparse = {"name": "weight_pruning", "level": 0.9}
    given = [
        *rows(dict.fromkeys(MACS, 1.0), ACCURATE),
        path_row("11", 1, 0.85, MACS["11"], options={"stage": "fine_tuned"}),
        row(1, compression="none", accuracy=0.95, macs=400),
        row(1, compression=pruned, accuracy=0.94, macs=150),
        row(1, compression=sparse, accuracy=0.94, macs=400, effective_macs=50),
        row(1, compression=sparse, accuracy=0.94, macs=400, effective_macs=50, batch=8),
        row(1, model="cifar_vgg16", compression=pruned, accuracy=0.99, macs=10),
    ]
    figure = figures_of(tmp_path, given)["paths-beside-others"]
    (panel,) = figure.panels
    drawn = {(mark["c"], round(1e6 * mark["x"]), round(mark["y"])): mark for mark in panel.rows}
    assert set(drawn) == {
        *(("leaf(base)", MACS[path], round(100 * ACCURATE[path])) for path in MACS),
        ("leaf(fine_tuned)", 100, 85),
        ("none", 400, 95),
        ("compact_channel_pruning", 150, 94),
        ("weight_pruning", 50, 94),
    }
    assert len(panel.rows) == len(drawn)
    assert {key for key, mark in drawn.items() if mark["f"]} == {
        ("weight_pruning", 50, 94),
        ("none", 400, 95),
        ("leaf(base)", 400, 95),
    }
    assert drawn["leaf(base)", 400, 95]["l"] == "00" and drawn["leaf(base)", 100, 80]["l"] == ""


def test_without_accuracies_only_what_is_saved_is_drawn(tmp_path: Path) -> None:
    assert set(figures_of(tmp_path, rows({"00": 10, "01": 5, "10": 8, "11": 2}, UNTRAINED))) == {"paths"}
