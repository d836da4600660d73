"""The report's section on compression: curves, levels to choose, types and storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Absent, Figure, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import compression
from dlas.face.tables.table import Table
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row, write
from tests.fixtures.sweeps import curve, sweep

LEVELS = [0.5, 0.9, 0.95]


def made(folder: Path, *rows: Row) -> Section | Absent:
    points = with_roles(read(write(folder, rows)))
    return compression.section(Context([str(folder)], points, details=read_details(points)))


def section_of(folder: Path, *rows: Row) -> Section:
    found = made(folder, *rows)
    assert isinstance(found, Section)
    return found


def figure(section: Section, name: str) -> Figure:
    (found,) = [block for block in section.blocks if isinstance(block, Figure) and block.name == name]
    return found


def lines(section: Section, name: str) -> list[list[str]]:
    (found,) = [block for block in section.blocks if isinstance(block, Table) and block.name == name]
    return [[column.header for column in found.columns]] + [
        [cell.plain for cell in line.cells] for line in found.lines
    ]


def pruned(
    level: float | str, steps: list[dict[str, Any]], technique: str = "weight_pruning", **given: Any
) -> Row:
    own = next(step for step in steps if step["level"] == (0.9 if level == "elbow" else level))
    reached = {"level": own["level"], "ratio": own["ratio"], "curve": steps}
    return row(
        **{
            "compression": {"name": technique, "level": level},
            "accuracy": own["accuracy"],
            "reached": reached,
            "test_images": 450,
            **given,
        }
    )


@pytest.fixture
def rows() -> list[Row]:
    """Weights pruned to the elbow, channels to one level, two kinds of int8, and the dense network."""
    steps = curve(LEVELS, 0.98, 0.95)
    dense: dict[str, Any] = {"accuracy": 0.98, "validation_accuracy": 0.98, "test_images": 450}
    return [
        row(nonzeros=1000, csr_bytes=8000, packed_bytes=4000, **{**dense, "model_bytes": 4000}),
        pruned("elbow", steps, model_bytes=4000, csr_bytes=800, nonzeros=100, effective_macs=5),
        pruned(0.95, steps, algorithm="gemm"),
        pruned(0.5, curve([0.2, 0.5], 0.98, 0.88), "channel_pruning"),
        row(compression="int8", reached={"bits": 8}, accuracy=0.97, test_images=450),
        row(compression={"name": "int8", "calibration": "none"}, reached={"bits": 8}, accuracy=0.1),
        row(algorithm="winograd", packed_bytes=16_000, **{**dense, "model_bytes": 4000}),
    ]


def test_a_technique_has_a_panel_and_a_training_one_line(tmp_path: Path, rows: list[Row]) -> None:
    found = figure(section_of(tmp_path, *rows), "accuracy-by-ratio")
    assert [panel.title for panel in found.panels] == ["channel_pruning", "weight_pruning"]
    weights = found.panels[1].rows
    assert [mark["x"] for mark in weights] == [0, 50, 90, 95] and len({mark["d"] for mark in weights}) == 1
    assert [mark["y"] for mark in weights] == [98, 97, 96, 95]
    assert [mark["b"] for mark in weights] == [98, 87, 86, 85]
    assert [mark["e"] for mark in weights] == [False, False, True, False]
    assert [mark["p"] for mark in weights] == [None, None, 1, 2]
    # Wilson's interval of 441 in 450.
    assert (weights[0]["lo"], weights[0]["hi"]) == pytest.approx((96.24, 98.94), abs=0.01)
    assert "between 3.0 and 10.0 points below" in found.sentence and "rings are elbows" in found.sentence


def test_the_chosen_level_is_shown_with_its_share_pruned_and_reason(tmp_path: Path, rows: list[Row]) -> None:
    section = section_of(tmp_path, *rows)
    header, told = lines(section, "compressed-networks")
    assert header[3:] == ["dense", "channel_pruning", "weight_pruning", "int8", "int8(calibration=none)"]
    assert told[0] == "cifar_resnet18" and told[3].startswith("98.00 % ([96.2")
    assert told[4:] == [
        f"{MISSING} (every level loses over 1 point)",
        "96.00 % (90 % gone, elbow)",
        "97.00 % (75 % gone)",
        "10.00 % (75 % gone)",
    ]
    assert section.lead.startswith(
        "At its elbow, or within 1 point of the dense network, weight_pruning removes 90 %"
    )


def test_shares_that_techniques_remove_are_of_the_same_networks(tmp_path: Path) -> None:
    steps = curve(LEVELS, 0.98, 0.95)
    both = [pruned("elbow", steps), pruned(0.5, curve([0.2, 0.5], 0.98, 0.975), "channel_pruning")]
    alone = pruned(0.3, curve([0.1, 0.3], 0.98, 0.975), model="alone")
    assert section_of(tmp_path, row(accuracy=0.98), *both, alone).lead.startswith(
        "At its elbow, or within 1 point of the dense network, channel_pruning removes 50 % of the "
        "convolutions' weights; weight_pruning removes 90 % of the convolutions' weights. "
    )


def test_types_stand_beside_the_dense_network(tmp_path: Path, rows: list[Row]) -> None:
    found = figure(section_of(tmp_path, *rows), "accuracy-of-types")
    (panel,) = found.panels
    assert {mark["y"]: mark["x"] for mark in panel.rows} == {
        "none": 98,
        "int8": 97,
        "int8(calibration=none)": 10,
    }
    assert "The largest loss is 88.00 points: cifar_resnet18 under int8(calibration=none)." in found.sentence
    assert panel.rows[1]["lo"] < 97 < panel.rows[1]["hi"] and panel.rows[2]["lo"] is None


def test_storage_says_where_csr_is_larger(tmp_path: Path, rows: list[Row]) -> None:
    section = section_of(tmp_path, *rows)
    _, dense, elbow, *_ = lines(section, "storage")
    assert dense[5:] == ["4 kB", "8 kB (larger)", "2.00", "4 kB to 16 kB", MISSING]
    assert elbow[2:] == ["100", "555 M", "5", "4 kB", "800 B", "0.20", MISSING, "30 s"]
    (table,) = [block for block in section.blocks if isinstance(block, Table) and block.name == "storage"]
    assert "more bytes than dense storage for 1 of 2 networks" in table.caption


def test_rows_without_curves_are_drawn_from_their_ratios(tmp_path: Path) -> None:
    older = [
        row(compression={"name": "p", "level": level}, reached={"ratio": level}, accuracy=1 - level / 10)
        for level in (0.5, 0.9)
    ]
    section = section_of(tmp_path, row(accuracy=1.0), *older)
    (panel,) = figure(section, "accuracy-by-ratio").panels
    assert [(mark["x"], mark["y"]) for mark in panel.rows] == [(0, 100), (50, 95), (90, 91)]
    assert {mark["b"] for mark in panel.rows} == {None} and {mark["lo"] for mark in panel.rows} == {None}
    assert lines(section, "compressed-networks")[1][-1] == f"{MISSING} (no validation accuracy)"


def test_datasets_do_not_share_a_panel(tmp_path: Path) -> None:
    steps = curve(LEVELS, 0.98, 0.95)
    found = figure(
        section_of(tmp_path, pruned(0.95, steps), pruned(0.95, curve(LEVELS, 0.5, 0.4), dataset="cifar10")),
        "accuracy-by-ratio",
    )
    assert [panel.title for panel in found.panels] == ["weight_pruning · cifar10", "weight_pruning · digits"]
    low = {name: str(spec).count("'domain': [30.0, 100]") for name, spec in found.specs.items()}
    assert low["cifar10"] > 0 and low["digits"] == 0


def test_without_accuracies_or_several_levels_no_level_is_recommended(tmp_path: Path) -> None:
    assert isinstance(made(tmp_path / "dense", row()), Absent)
    unlabelled = row(compression="p", reached={"ratio": 0.5}, accuracy=None, compiled_accuracy=None)
    section = section_of(tmp_path / "unlabelled", unlabelled)
    assert "No accuracy is known" in section.lead and len(section.blocks) == 1
    assert len(lines(section, "storage")) == 2
    one = row(compression={"name": "p", "level": 0.5}, reached={"ratio": 0.5}, accuracy=0.1)
    assert "removes" not in section_of(tmp_path / "one", row(), one).lead


def test_a_sweeps_trainings_are_drawn_once(tmp_path: Path) -> None:
    found = figure(section_of(tmp_path, *sweep(models=3)), "accuracy-by-ratio")
    assert [len(panel.rows) for panel in found.panels] == [9, 9]
