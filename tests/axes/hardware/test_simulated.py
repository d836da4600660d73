"""A simulated device is swept like others, runs nothing, and says so wherever its rows are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlas
from dlas.axes.hardware.drivers.simulated import Simulated
from dlas.errors import InputError, Unsupported
from dlas.face.tables.marks import SIMULATED_MARK
from dlas.stack import MeasureSettings
from dlas.sweep.engine.diagnosis import examine
from dlas.sweep.engine.steps.simulate import NOTE
from dlas.sweep.rows.machines import machine_id, machine_name
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study import parts

STUDY = """
name = "simulated"

[axes]
dataset  = [{ name = "random", size = 224, images = 1 }]
model    = [{ name = "random_layers", layers = "conv3x3-64,bn,relu,max2/2" }]
compiler = ["torch_eager"]

[[axes.hardware]]
name   = "simulated_jetson"
gpu_hz = [114.75e6, 1377e6]
board  = [0, 1]

[measure]
repeats = 10
"""


def device(**options: object) -> Simulated:
    found = parts.make("hardware", "simulated_jetson", options)
    assert isinstance(found, Simulated)
    return found


def test_it_tells_its_clocks_and_that_it_is_simulated() -> None:
    told = device(cpu_hz=115.2e6, board=3).describe()
    assert (told["cpu_hz"], told["gpu_hz"], told["memory_hz"]) == (115.2e6, 1377e6, 2133e6)
    assert told["simulated"] is True and told["instance"] == "board3"
    assert (machine_name(told) or "").startswith("simulated: ")
    assert machine_id(told) == machine_id(device(board=1).describe())
    real = {**told, "simulated": None, "cpu": "Carmel"}
    assert machine_id(real) != machine_id({**told, "cpu": "Carmel"})


def test_a_clock_that_is_no_step_is_refused() -> None:
    with pytest.raises(InputError, match=r"memory_hz = 1000000000 is no step .* 927400000 and 1168500000"):
        device(memory_hz=1e9).verify()


def test_it_runs_no_program() -> None:
    with pytest.raises(Unsupported, match="runs nothing"):
        device().measure(None, None, MeasureSettings(), lambda: None)  # type: ignore[arg-type]


def test_a_doctor_says_what_it_is() -> None:
    (check,) = examine("simulated_jetson")
    assert check.status == "warn" and "simulated" in check.finding


def test_a_sweep_tells_times_and_energies_and_marks_them(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    out = tmp_path / "rows"
    dlas.run(tmp_path / "study.toml", out=out, cache=tmp_path / "cache", in_process=True)
    rows = list(read_rows(out))
    assert [row.status for row in rows] == ["ok"] * 4
    for row in rows:
        assert row.device["simulated"] is True and NOTE in (row.note or "")
        assert len(row.latency_s) == 10 and (row.energy_j or 0) > 0
        assert row.error is None and row.peak_memory_bytes is None and "build" not in row.artifacts
        assert all(layer["latency_s"] and layer["energy_j"] for layer in row.layers)
    slow, fast = ([row for row in rows if row.hardware["gpu_hz"] == hertz] for hertz in (114.75e6, 1377e6))
    assert min(min(row.latency_s) for row in slow) > max(max(row.latency_s) for row in fast)
    shown = str(dlas.table(out))
    assert SIMULATED_MARK in shown and "the device is simulated" in shown
