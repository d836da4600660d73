"""Engines of WebAssembly as devices: what they refuse, when times have settled, what is wrong with one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.axes.compilers.hand import Hand
from dlas.axes.compilers.onnxruntime import OnnxRuntime
from dlas.axes.compilers.programs.webassembly import FASTER, STEPS, least_runs, settled
from dlas.axes.hardware import engine_diagnosis, engines
from dlas.axes.hardware.drivers.chromium import ChromiumEngine
from dlas.axes.hardware.drivers.node import NodeEngine
from dlas.axes.hardware.drivers.wasmtime import WasmtimeEngine
from dlas.axes.hardware.engines import WebAssemblyEngine
from dlas.bench.engines import chromium
from dlas.bench.engines.node import NodeJs
from dlas.bench.engines.process import EngineFailed, PipedProgram
from dlas.bench.measuring.disturbance import read
from dlas.bench.measuring.machine import Machine
from dlas.errors import PointError, Unsupported
from dlas.stack import Program
from dlas.sweep.study import parts
from dlas.testing import check_hardware
from tests.fixtures.commands import Command
from tests.fixtures.small_network import images, network
from tests.fixtures.webassembly import needs_wasmtime

ENGINES = {"wasmtime": WasmtimeEngine, "node": NodeEngine, "chromium": ChromiumEngine}


def made(name: str, **options: Any) -> WebAssemblyEngine:
    device = parts.make("hardware", name, options)
    assert isinstance(device, ENGINES[name])
    return device


def compiling(slow: int, factor: float = 10) -> Callable[[int], float]:
    """Return runs that take 0.01 s, and more of them while fewer than ``slow`` were run."""
    done = 0

    def run(runs: int) -> float:
        nonlocal done
        seconds = 0.0
        for _ in range(runs):
            seconds += 0.01 * (factor if done < slow else 1)
            done += 1
        return seconds

    return run


@pytest.mark.parametrize("slow", [0, 1, 20, 60])
def test_times_settle_when_the_engine_has_compiled(slow: int) -> None:
    run = compiling(slow, 1.5)
    assert settled(run) == pytest.approx(0.01, rel=FASTER - 1)
    assert run(10) == pytest.approx(0.1)


def test_settling_ends_even_where_times_never_settle() -> None:
    seconds = 1.0

    def faster(runs: int) -> float:
        nonlocal seconds
        seconds *= 0.9
        return seconds * runs

    assert 0 < settled(faster) < 1
    assert settled(lambda runs: max(0.0, 1e-7 * runs - 1e-6)) > 0, "a coarse clock says 0 at first"


def test_samples_are_a_hundred_steps_of_the_clock() -> None:
    assert least_runs(1e-9, 1e-3) == 1
    assert least_runs(1e-4, 1e-3) * 1e-3 >= STEPS * 1e-4
    with pytest.raises(Unsupported, match="steps of 16 ms"):
        least_runs(0.016, 1e-3)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_an_engine_that_is_missing_is_unsupported_with_advice(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ENGINES[name].engine, "missing", classmethod(lambda cls: "it is not there: install it")
    )
    device = made(name)
    assert device.unsupported() == "it is not there: install it"
    assert "engine" not in device.describe()
    with pytest.raises(Unsupported, match="not there"):
        device.started()


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_a_machine_without_a_linker_is_told_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ENGINES[name].engine, "missing", classmethod(lambda cls: None))
    monkeypatch.setattr(engines, "linker", lambda: None)
    assert "dlas[web]" in str(made(name).unsupported())


def test_vectors_are_an_option_that_targets_tell() -> None:
    features = [made("node", relaxed_simd=relaxed).target().description["mattr"] for relaxed in (True, False)]
    assert "+relaxed-simd" in features[0] and "+relaxed-simd" not in features[1]
    assert made("node").target().on_webassembly
    assert not parts.make("hardware", "local_cpu", {}).target().on_webassembly


def test_only_compilers_that_build_with_tvm_make_modules() -> None:
    device = made("chromium")
    assert device.refuses(Hand) is None
    assert "no WebAssembly" in str(device.refuses(OnnxRuntime))
    with pytest.raises(Unsupported, match="no WebAssembly"):
        OnnxRuntime().load_in_engine(Path(), None)  # type: ignore[arg-type]


@needs_wasmtime
def test_records_of_searches_know_the_engine_and_its_version() -> None:
    told = made("wasmtime").recorded_as()
    assert str(told["engine"]).startswith("wasmtime ") and told["machine"]


@needs_wasmtime
def test_a_network_keeps_the_contract_of_devices(tmp_path: Path) -> None:
    device = made("wasmtime")
    Hand().build(network(), lambda: parts.make("algorithm", "blocked", {}), device.target(), 1, tmp_path)
    before = os.sched_getaffinity(0)
    try:
        device.prepare()
        program: Program = device.load(Hand(), tmp_path, network)
        check_hardware(device, OnItsOwnImages(program, images(1)), seconds=0)
    finally:
        os.sched_setaffinity(0, before)


class OnItsOwnImages(Program):
    """A program that takes no images but its own."""

    def __init__(self, program: Program, own: np.ndarray) -> None:
        self._program, self._own = program, own

    def bind(self, images: np.ndarray) -> Callable[[], Any]:
        return self._program.bind(self._own)

    def run(self, images: np.ndarray) -> Any:
        return self._program.run(self._own)

    def timer(self, images: np.ndarray) -> Callable[[int], float] | None:
        return self._program.timer(self._own)


def test_an_engine_that_does_not_start_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: object) -> None:
        raise EngineFailed("it has ended with exit code 127")

    monkeypatch.setattr(NodeEngine, "start", start)
    monkeypatch.setattr(NodeEngine, "unsupported", lambda self: None)
    with pytest.raises(PointError, match="node does not start: it has ended with exit code 127"):
        made("node").started()


def test_a_program_that_says_nothing_is_not_waited_for_forever(tmp_path: Path) -> None:
    program = PipedProgram(["sleep", "60"], b"\n", tmp_path / "own")
    begun = time.monotonic()
    with pytest.raises(EngineFailed, match="not answered within 0 s"):
        program.receive(0.2)
    program.close()
    assert time.monotonic() - begun < 30
    assert not (tmp_path / "own").exists(), "its folder is deleted"


def test_a_program_that_does_not_exist_is_told() -> None:
    program = PipedProgram(["no-such-engine"], b"\n")
    with pytest.raises(EngineFailed, match=r"exit code 127: no-such-engine: No such file"):
        program.receive(20)
    program.close()


def test_the_time_of_processes_that_this_one_started_is_counted() -> None:
    machine = Machine()
    before, own = machine.children_s(), read(machine).own_s
    busy = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\ninput()"
    command = [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while machine.children_s() - before < 0.35:
            assert time.monotonic() < end
            time.sleep(0.05)
        assert read(machine, in_children=True).own_s - read(machine).own_s >= 0.3
        process.communicate(b"\n")
    assert read(machine).own_s - own < 5


@needs_wasmtime
@pytest.mark.skipif(NodeJs.missing() is not None, reason=str(NodeJs.missing()))
def test_doctor_examines_an_engine(dlas_here: Command) -> None:
    for name in ("wasmtime", "node"):
        told = dlas_here("doctor", "--device", name)
        assert told.returncode == 0, told.stderr
        for words in ("a kernel of multiply-adds is right", "steps of", "linker"):
            assert words in told.stdout


def test_doctor_says_what_an_engine_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "browser", lambda: None)
    (check,) = engine_diagnosis.checks(made("chromium"))
    assert check.status == "fail" and "Debian's package is chromium" in check.finding
