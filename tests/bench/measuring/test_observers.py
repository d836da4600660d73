"""Observers, and the meters of energy, on machines that consist of files."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.measuring.disturbance import Reading
from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.meters import EnergyCounters, PowerRails, find_counters, find_meter, find_rails
from dlas.bench.measuring.observers.clocks import Clocks
from dlas.bench.measuring.observers.energy import Energy
from dlas.bench.measuring.observers.observer import Observer, Slice
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.watch import OBSERVERS, Watch, fields
from dlas.bench.measuring.sampling import Instruments, sample
from dlas.stack import MeasureSettings
from dlas.sweep.rows.results import Row

POWERCAP = "sys/class/powercap"
HWMON = "sys/class/hwmon"


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


def rails(sensor: int, *labels: str, millivolts: int = 5000, milliamperes: int = 800) -> dict[str, object]:
    folder = f"{HWMON}/hwmon{sensor}"
    files: dict[str, object] = {f"{folder}/name": "ina3221"}
    for channel, label in enumerate(labels, start=1):
        files[f"{folder}/in{channel}_label"] = label
        files[f"{folder}/in{channel}_input"] = millivolts
        files[f"{folder}/curr{channel}_input"] = milliamperes
    return files


def ticking(step_s: float) -> Callable[[], float]:
    """Return a clock that goes on by ``step_s`` whenever it is asked."""
    times = itertools.count()
    return lambda: next(times) * step_s


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
    hidden = {"counters"}  # on most virtual machines
    assert set(seen) - hidden == set(OBSERVERS) - hidden
    found = fields([Slice([1.0], 1, json.loads(json.dumps(seen)))])
    assert found.keys() <= Row.__dataclass_fields__.keys()
    assert found["clock_mean_hz"] == 1.8e9 and found["latency_s"] == [1.0]


def test_where_nothing_measures_fields_are_null(tmp_path: Path) -> None:
    watch = Watch.here(machine=write(tmp_path, {}))
    watch.before()
    seen = watch.after()
    assert not {"clocks", "energy"} & seen.keys()
    found = fields([Slice([1.0], 1, seen)])
    named = ("energy_j", "clock_low_hz", "clock_mean_hz", "clock_high_hz", "load", "steal")
    assert [found[name] for name in named] == [None] * 6


def test_clocks_are_those_of_the_processors_that_may_be_used(tmp_path: Path) -> None:
    observer = Clocks.here(write(tmp_path, frequencies(1_000_000, 1_600_000, 9_000_000)), on_gpu=False)
    assert observer is not None
    observer.before()
    write(tmp_path, frequencies(1_200_000, 2_200_000, 9_000_000))
    slices = [Slice([1.0], 1, {"clocks": observer.after()}), Slice([1.0], 1, {"clocks": [2e9, 2e9]})]
    assert Clocks.fields(slices) == {"clock_low_hz": 1e9, "clock_mean_hz": 10e9 / 6, "clock_high_hz": 2.2e9}
    assert Clocks.here(Machine(tmp_path), on_gpu=True) is None


def test_processor_time_is_that_of_a_call_and_not_of_the_other_processes() -> None:
    own_s = [5.0, 8.0, 20.0, 21.0]
    observer = Processors(lambda: Reading(9.0, 2, own_s.pop(0), busy_s=99.0))
    slices = []
    for samples, calls in (([1.0, 3.0], 5), ([1.0], 10)):
        observer.before()
        slices.append(Slice(samples, calls, {"processors": observer.after()}))
    assert Processors.fields(slices)["cpu_s"] == pytest.approx((3 + 1) / 20)


def test_where_the_devices_clock_times_a_program_the_host_has_no_processor_time_of_it() -> None:
    settings = MeasureSettings(repeats=2, slices=1, sample_seconds=1e-4)
    assert sample(lambda: None, settings, lambda: None)["cpu_s"] > 0
    timed = sample(lambda: None, settings, lambda: None, timer=lambda runs: 1e-3 * runs)
    assert timed["latency_s"] == [pytest.approx(1e-3)] * 2 and timed["cpu_s"] is None


def test_energy_is_the_mean_power_times_the_time_of_a_call(tmp_path: Path) -> None:
    root = write(tmp_path, zone("intel-rapl:0", "package-0", 1_000_000)).root
    meter = find_meter(root, on_gpu=False)
    assert isinstance(meter, EnergyCounters)
    observer = Energy(meter, ticking(10.0))
    observer.before()
    write(tmp_path, zone("intel-rapl:0", "package-0", 151_000_000))
    seen = {"energy": observer.after()}
    assert seen["energy"] == [150.0, 10.0], "15 W for ten seconds"
    full = Slice([0.01] * 100, 10, seen)
    assert Energy.fields([full]) == {"energy_j": pytest.approx(0.15)}
    idle = Slice([0.01] * 100, 8, seen)
    assert Energy.fields([idle]) == {"energy_j": None}, "for a fifth of the time nothing was timed"
    assert Energy.fields([full, Slice([0.01], 10, {"energy": None})]) == {"energy_j": None}


def test_a_counter_that_is_full_begins_again(tmp_path: Path) -> None:
    write(tmp_path, zone("intel-rapl:0", "package-0", 990_000_000, most=1_000_000_000))
    meter = EnergyCounters(find_counters(tmp_path / POWERCAP))
    meter.start()
    used = []
    for microjoules in (20_000_000, 520_000_000, 10_000_000):
        write(tmp_path, zone("intel-rapl:0", "package-0", microjoules, most=1_000_000_000))
        used.append(meter.used())
    assert used == [30.0, 500.0, 490.0]


def test_packages_and_their_memory_count_and_parts_of_packages_do_not(tmp_path: Path) -> None:
    names = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "2": "psys"}
    for number, label in names.items():
        write(tmp_path, zone(f"intel-rapl:{number}", label, 0))
    write(tmp_path, zone("intel-rapl-mmio:0", "package-0", 0))  # the first package once more
    found = [counter.file.parent.name for counter in find_counters(tmp_path / POWERCAP)]
    assert found == ["intel-rapl:0", "intel-rapl:0:1", "intel-rapl:1"]


def test_counters_that_may_not_be_read_are_none(tmp_path: Path) -> None:
    write(tmp_path, zone("intel-rapl:0", "package-0", 0))
    (tmp_path / POWERCAP / "intel-rapl:0/energy_uj").unlink()
    (tmp_path / POWERCAP / "intel-rapl:0/energy_uj").mkdir()
    assert find_meter(tmp_path, on_gpu=False) is None


def test_a_processors_counters_are_no_meter_of_a_gpu(tmp_path: Path) -> None:
    write(tmp_path, zone("intel-rapl:0", "package-0", 0))
    assert find_meter(tmp_path, on_gpu=True) is None
    write(tmp_path, rails(3, "VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"))
    assert isinstance(find_meter(tmp_path, on_gpu=True), PowerRails)


@pytest.mark.parametrize(
    ("sensors", "counted"),
    [
        ([("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC")], ["VDD_IN"]),
        ([("GPU", "CPU", "SOC"), ("CV", "VDDRQ", "SYS5V")], ["CPU", "CV", "GPU", "SOC", "SYS5V", "VDDRQ"]),
        ([("GPU", "CPU", "SOC")], []),
        ([("SOMETHING", "ELSE")], []),
    ],
)
def test_rails_are_counted_that_add_up_to_a_module(
    tmp_path: Path, sensors: list[tuple[str, ...]], counted: list[str]
) -> None:
    for number, labels in enumerate(sensors):
        write(tmp_path, rails(number, *labels))
    write(tmp_path, {f"{HWMON}/hwmon9/name": "cpu_thermal"})
    assert [rail.label for rail in find_rails(tmp_path / HWMON)] == counted


def test_power_is_added_up_over_time(tmp_path: Path) -> None:
    write(tmp_path, rails(0, "VDD_IN", millivolts=5000, milliamperes=1000))
    meter = PowerRails(find_rails(tmp_path / HWMON), ticking(2.0))
    meter.start()
    write(tmp_path, rails(0, "VDD_IN", millivolts=5000, milliamperes=3000))
    assert meter.used() == pytest.approx((5 + 15) / 2 * 2)
    assert meter.used() == pytest.approx(15 * 2)
    (tmp_path / HWMON / "hwmon0/curr1_input").write_text("")
    assert meter.used() is None
