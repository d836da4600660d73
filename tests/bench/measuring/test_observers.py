"""Observers on machines that consist of files."""

from __future__ import annotations

import json
import mmap
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.measuring.disturbance import Reading
from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.clocks import Clocks
from dlas.bench.measuring.observers.observer import Observer, Slice
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.watch import OBSERVERS, Watch, fields
from dlas.bench.measuring.sampling import Instruments, sample
from dlas.stack import MeasureSettings
from dlas.sweep.rows.results import Row
from tests.fixtures import sensors
from tests.fixtures.sensors import FakeNvml

POWERCAP = "sys/class/powercap"


def write(root: Path, files: Mapping[str, object]) -> Machine:
    """Return a machine that consists of these files, beside those of two processors."""
    affinity = {"proc/self/status": "Cpus_allowed_list:\t0-1"}
    for name, content in {**affinity, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")
    return Machine(root)


def frequencies(*kilohertz: int) -> dict[str, int]:
    cpus = "sys/devices/system/cpu"
    return {f"{cpus}/cpu{cpu}/cpufreq/scaling_cur_freq": each for cpu, each in enumerate(kilohertz)}


def zone(name: str, label: str, microjoules: int, most: int = 262_143_328_850) -> dict[str, object]:
    folder = f"{POWERCAP}/{name}"
    return {
        f"{folder}/name": label,
        f"{folder}/energy_uj": microjoules,
        f"{folder}/max_energy_range_uj": most,
    }


class Steps(Observer):
    """Writes down what it is asked; looks as often as it may."""

    every_s = 1e-4

    def __init__(self) -> None:
        self.log: list[str] = []
        self.looked = threading.Event()

    @classmethod
    def here(cls, machine: Machine, on_gpu: bool) -> Steps:
        return cls()

    def before(self) -> None:
        self.looked.clear()
        self.log.append("before")

    def during(self) -> None:
        self.log.append(threading.current_thread().name)
        self.looked.set()

    def after(self) -> str:
        self.log.append("after")
        return "seen"

    @classmethod
    def fields(cls, slices: Sequence[Slice]) -> dict[str, Any]:
        return {"steps": [piece.seen["steps"] for piece in slices]}


def test_an_observer_of_ones_own_needs_its_class_and_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBSERVERS, "steps", Steps)
    found = sample(lambda: None, MeasureSettings(repeats=4, slices=2), lambda: None)
    assert found["steps"] == ["seen", "seen"]


def test_observers_look_before_after_and_in_a_thread_of_their_own_between() -> None:
    inner, outer = Steps(), Steps()
    watch = Watch({"outer": outer, "inner": inner})
    watch.before()
    assert inner.looked.wait(30)
    assert list(watch.after()) == ["inner", "outer"], "the one that begins first ends last"
    first, *between, last = inner.log
    assert (first, last) == ("before", "after")
    assert between and threading.current_thread().name not in between


def test_nothing_looks_any_more_after_a_program_has_failed() -> None:
    steps = Steps()

    def fail() -> None:
        if steps.log:
            assert steps.looked.wait(30)
            raise RuntimeError("device lost")

    with pytest.raises(RuntimeError, match="device lost"):
        sample(fail, MeasureSettings(seconds=5), lambda: None, Instruments(watch=Watch({"steps": steps})))
    steps.looked.clear()
    assert not steps.looked.wait(0.05)


def test_every_field_of_an_observer_is_a_field_of_rows_and_crosses_as_json(tmp_path: Path) -> None:
    files = {**frequencies(1_800_000, 1_800_000), **zone("intel-rapl:0", "package-0", 10)}
    watch = Watch.here(machine=write(tmp_path, files))
    watch.before()
    seen = watch.after()
    hidden = {"counters", "thermal"}  # on most virtual machines
    assert set(seen) - hidden == set(OBSERVERS) - hidden
    found = fields([Slice([1.0], 1, json.loads(json.dumps(seen)))])
    assert found.keys() <= Row.__dataclass_fields__.keys()
    assert found["clock_mean_hz"] == 1.8e9 and found["latency_s"] == [1.0]


def test_where_nothing_measures_fields_are_null(tmp_path: Path) -> None:
    watch = Watch.here(machine=write(tmp_path, {}))
    watch.before()
    seen = watch.after()
    assert not {"clocks", "energy", "thermal"} & seen.keys()
    found = fields([Slice([1.0], 1, seen)])
    named = ("energy_j", "power_w", "power_note", "clock_low_hz", "clock_mean_hz", "clock_high_hz", "load")
    assert {found[name] for name in (*named, "steal", "temperature_c", "throttled")} == {None}


def test_clocks_are_those_of_the_processors_that_may_be_used(tmp_path: Path) -> None:
    observer = Clocks.here(write(tmp_path, frequencies(1_000_000, 1_600_000, 9_000_000)), on_gpu=False)
    assert observer is not None
    observer.before()
    write(tmp_path, frequencies(1_200_000, 2_200_000, 9_000_000))
    later = {"clocks": {"processors": [2e9, 2e9]}}
    found = Clocks.fields([Slice([1.0], 1, {"clocks": observer.after()}), Slice([1.0], 1, later)])
    assert [found[f"clock_{name}_hz"] for name in ("low", "mean", "high")] == [1e9, 10e9 / 6, 2.2e9]
    assert found["gpu_clock_mean_hz"] is None


def test_clocks_of_a_program_on_a_gpu_are_those_of_the_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensors.install(monkeypatch, None)
    machine = write(tmp_path, frequencies(1_000_000))
    assert Clocks.here(machine, on_gpu=True) is None
    nvml = FakeNvml(clocks_mhz=(1980, 2619))
    sensors.install(monkeypatch, nvml)
    observer = Clocks.here(machine, on_gpu=True)
    assert observer is not None
    observer.before()
    nvml.clocks_mhz = (1200, 2619)
    found = Clocks.fields([Slice([1.0], 1, {"clocks": observer.after()})])
    assert found["gpu_clock_mean_hz"] == 1.59e9 and found["gpu_memory_clock_mean_hz"] == 2.619e9
    assert found["clock_mean_hz"] is None


def test_processor_time_is_that_of_a_call_and_not_of_the_other_processes() -> None:
    own = [(5.0, 100), (8.0, 130), (20.0, 200), (21.0, 230)]

    def read() -> Reading:
        own_s, faults = own.pop(0)
        return Reading(9.0, 2, own_s, busy_s=99.0, page_faults=faults)

    observer = Processors(read)
    slices = []
    for samples, calls in (([1.0, 3.0], 5), ([1.0], 10)):
        observer.before()
        slices.append(Slice(samples, calls, {"processors": observer.after()}))
    found = Processors.fields(slices)
    assert found["cpu_s"] == pytest.approx((3 + 1) / 20) and found["page_faults"] == (30 + 30) / 20


def test_memory_that_is_given_back_and_written_again_costs_page_faults() -> None:
    settings = MeasureSettings(repeats=2, slices=1, sample_seconds=1e-4)

    def renew(pages: int = 4096) -> None:
        with mmap.mmap(-1, pages * mmap.PAGESIZE) as fresh:
            for page in range(pages):
                fresh[page * mmap.PAGESIZE] = 1

    assert sample(renew, settings, lambda: None)["page_faults"] >= 4096
    assert sample(lambda: None, settings, lambda: None)["page_faults"] < 100


def test_where_the_devices_clock_times_a_program_the_host_has_no_processor_time_of_it() -> None:
    settings = MeasureSettings(repeats=2, slices=1, sample_seconds=1e-4)
    assert sample(lambda: None, settings, lambda: None)["cpu_s"] > 0
    timed = sample(lambda: None, settings, lambda: None, timer=lambda runs: 1e-3 * runs)
    assert timed["latency_s"] == [pytest.approx(1e-3)] * 2
    assert timed["cpu_s"] is None and timed["page_faults"] is None
