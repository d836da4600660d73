"""Tuning curves of networks with many workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Figure, Panel, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import curves
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import CURVES
from tests.fixtures.rows import row, write


def workload(number: int, improvements: list[tuple[int, float]], layers: int = 1) -> dict[str, Any]:
    names = [f"layer{number}.{place}" for place in range(layers)]
    best = [[trials, 0.0, time_s] for trials, time_s in improvements]
    return {"layers": names, "space": "rules", "trials": 64, "best": best}


def panel_of(folder: Path, workloads: list[dict[str, Any]]) -> Panel:
    tuned = row(compiler={"name": "metaschedule", "trials": 64}, tuning={"trials": 64, "seconds": 60.0})
    (write(folder, [row(), tuned]) / CURVES).mkdir()
    (folder / CURVES / f"{tuned.id}.json").write_text(json.dumps(workloads))
    points = with_roles(read(folder))
    section = curves.section(Context([str(folder)], points, details=read_details(points)))
    assert isinstance(section, Section)
    (figure,) = section.blocks
    assert isinstance(figure, Figure)
    (panel,) = figure.panels
    return panel


def lines(panel: Panel) -> dict[str, list[tuple[int, float]]]:
    names = dict.fromkeys(mark["d"] for mark in panel.rows)
    return {name: [(mark["x"], mark["y"]) for mark in panel.rows if mark["d"] == name] for name in names}


def test_of_sixty_workloads_the_longest_are_drawn_and_the_others_added(tmp_path: Path) -> None:
    short = [workload(n, [(1, 4e-6), (10 + n, 2e-6)]) for n in range(55)]
    long = [workload(100 + n, [(1, 1e-3), (30, 1e-3 / (n + 2))]) for n in range(5)]
    panel = panel_of(tmp_path, short + long)
    assert panel.title.endswith("metaschedule(trials=64): 5 of 60 workloads")
    drawn = lines(panel)
    assert list(drawn) == [*curves.RANKS, curves.OTHERS]
    assert [steps[-1] for steps in list(drawn.values())[:5]] == [(64, n) for n in (2, 3, 4, 5, 6)]
    together = drawn[curves.OTHERS]
    assert together[0] == (1, 1) and together[-1] == (64, 2)
    assert dict(together)[10 + 27] == pytest.approx(55 * 4 / (28 * 2 + 27 * 4), rel=1e-4)
    told = {mark["d"]: mark["t"] for mark in panel.rows}
    assert "layer0.0, layer1.0" in told[curves.OTHERS] and "layer100.0" in told["longest"]


def test_a_workload_of_many_layers_takes_the_time_of_all(tmp_path: Path) -> None:
    often = workload(0, [(1, 2e-4), (9, 1e-4)], layers=20)
    panel = panel_of(tmp_path, [workload(1, [(2, 1e-3)]), often])
    assert panel.title.endswith(": 2 workloads")
    assert lines(panel) == {"longest": [(1, 1), (9, 2), (64, 2)], "second": [(2, 1), (64, 1)]}
