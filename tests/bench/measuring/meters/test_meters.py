"""Meters of energy, on machines that consist of files and on sensors with a known load."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dlas.bench.measuring.meters import find_meter
from dlas.bench.measuring.meters.counters import EnergyCounters
from dlas.bench.measuring.meters.ina3221 import LEAST_PERIOD_S
from dlas.bench.measuring.meters.mean_power import MeanPower
from dlas.bench.measuring.meters.meter import MISSING, EnergyReading, Meter
from dlas.bench.measuring.meters.powers import PowerMeter
from dlas.bench.measuring.meters.rapl import POWERCAP, find_counters
from tests.fixtures import sensors, sysfs
from tests.fixtures.sensors import FakeNvml, Load, Rail

HWMON = "sys/class/hwmon"


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


def readings(meter: Meter, load: Load, count: int, period_s: float = 0.1) -> list[EnergyReading]:
    """Return readings, one a period."""
    meter.start()
    found = []
    for _ in range(count):
        load.spend(period_s)
        found.append(meter.read())
    return found


def mean(found: list[EnergyReading], meter: Meter) -> MeanPower:
    told = MeanPower.of(found, meter.rails)
    assert told is not None
    return told


def wave(now: float) -> float:
    """Return a power that swings by half around 20 W."""
    return 20 + 10 * math.sin(2 * math.pi * now / 0.7)


@pytest.mark.parametrize("full_j", [65536.0, 3.0])
def test_a_counter_tells_the_energy_of_a_known_load_also_where_it_begins_again(full_j: float) -> None:
    load = Load(wave, full_j=full_j)
    meter = EnergyCounters("rapl", [load], 0.1, load.clock)
    found = mean(readings(meter, load, 70), meter)
    assert found.watts == pytest.approx(20, rel=0.01), "ten whole swings"
    assert (found.readings, found.missing, found.rails_w) == (70, 0, {})


def test_a_sensor_of_power_tells_the_energy_of_a_known_load_and_of_its_rails() -> None:
    load = Load(wave)
    parts = [Rail("CPU", load, 0.75), Rail("GPU", load, 0.25), Rail("of the CPU", load, 0.5)]
    meter = PowerMeter("ina3221", parts, ["CPU", "GPU"], 0.05, load.clock)
    found = mean(readings(meter, load, 140, 0.05), meter)
    assert found.watts == pytest.approx(20, rel=0.01)
    assert found.rails_w == pytest.approx({"CPU": 15.0, "GPU": 5.0, "of the CPU": 10.0}, rel=0.01)


def test_missing_readings_are_counted_and_their_energy_is_in_the_next_ones() -> None:
    load = Load(lambda now: 15.0, fails=lambda reading: reading in (0, 21, 22))
    meter = EnergyCounters("rapl", [load], 0.1, load.clock)
    taken = readings(meter, load, 60)
    assert [at for at, each in enumerate(taken) if each == MISSING] == [0, 20, 21]
    found = mean(taken, meter)
    assert (found.missing, found.readings) == (3, 60)
    assert found.watts == pytest.approx(15)
    assert taken[22].seconds == pytest.approx(0.3)


def test_with_many_missing_readings_the_power_is_not_known() -> None:
    load = Load(lambda now: 15.0, fails=lambda reading: reading > 50)
    meter = EnergyCounters("rapl", [load], 0.1, load.clock)
    assert MeanPower.of(readings(meter, load, 60), ()) is None
    assert MeanPower.of([], ()) is None


def test_drift_is_that_of_the_last_third_from_the_first() -> None:
    load = Load(lambda now: 10.0 + (now - 100.0))
    meter = EnergyCounters("rapl", [load], 0.1, load.clock)
    assert mean(readings(meter, load, 60), meter).drift == pytest.approx(15 / 11 - 1, rel=0.01)
    steady = Load(lambda now: 10.0)
    meter = EnergyCounters("rapl", [steady], 0.1, steady.clock)
    assert mean(readings(meter, steady, 60), meter).drift == pytest.approx(0, abs=1e-6)
    assert mean(readings(meter, steady, 2), meter).drift is None


def test_packages_and_their_memory_count_and_parts_of_packages_do_not(tmp_path: Path) -> None:
    names = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "2": "psys"}
    for number, label in names.items():
        sysfs.put(tmp_path, zone(f"intel-rapl:{number}", label, 0))
    sysfs.put(tmp_path, zone("intel-rapl-mmio:0", "package-0", 0))  # the first package once more
    found = find_counters(tmp_path / POWERCAP)
    assert [each.file.parent.name for each in found] == ["intel-rapl:0", "intel-rapl:0:1", "intel-rapl:1"]
    assert [each.label for each in found] == ["package-0", "package-0 dram", "package-1"]


def test_the_counters_of_a_server_add_up(tmp_path: Path) -> None:
    meter = find_meter(sysfs.intel(tmp_path), on_gpu=False)
    assert isinstance(meter, EnergyCounters) and meter.sensor == "rapl"
    meter.start()
    sysfs.put(tmp_path, {f"{POWERCAP}/intel-rapl:0/energy_uj": 671_150})  # begun again at 262143.328850 J
    sysfs.put(tmp_path, {f"{POWERCAP}/intel-rapl:0:0/energy_uj": 1_500_000})
    found = meter.read()
    assert found.joules == pytest.approx(1.5), "a joule of the package, half a one of its memory"
    assert dict(zip(meter.rails, found.rails_j, strict=True)) == pytest.approx(
        {"package-0": 1.0, "package-0 dram": 0.5}
    )


def test_counters_that_may_not_be_read_are_none(tmp_path: Path) -> None:
    sysfs.put(tmp_path, zone("intel-rapl:0", "package-0", 0))
    (tmp_path / POWERCAP / "intel-rapl:0/energy_uj").unlink()
    (tmp_path / POWERCAP / "intel-rapl:0/energy_uj").mkdir()
    assert find_meter(tmp_path, on_gpu=False) is None


def test_a_processors_counters_are_no_meter_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensors.install(monkeypatch, None)
    sysfs.intel(tmp_path)
    assert find_meter(tmp_path, on_gpu=True) is None
    sysfs.put(tmp_path, rails(3, "VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"))
    meter = find_meter(tmp_path, on_gpu=True)
    assert meter is not None and meter.sensor == "ina3221"


@pytest.mark.parametrize(
    ("labels", "counted"),
    [
        ([("VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC")], ("VDD_IN",)),
        ([("GPU", "CPU", "SOC"), ("CV", "VDDRQ", "SYS5V")], ("CPU", "CV", "GPU", "SOC", "SYS5V", "VDDRQ")),
        ([("GPU", "CPU", "SOC")], None),
        ([("SOMETHING", "ELSE")], None),
    ],
)
def test_rails_are_counted_that_add_up_to_a_module(
    tmp_path: Path, labels: list[tuple[str, ...]], counted: tuple[str, ...] | None
) -> None:
    for number, own in enumerate(labels):
        sysfs.put(tmp_path, rails(number, *own))
    sysfs.put(tmp_path, {f"{HWMON}/hwmon9/name": "cpu_thermal"})
    meter = find_meter(tmp_path, on_gpu=False)
    if counted is None:
        assert meter is None
    else:
        assert isinstance(meter, PowerMeter) and meter.counted == counted
        assert set(meter.rails) == {label for own in labels for label in own}


def test_a_sensor_is_read_at_its_own_period_and_not_more_often(tmp_path: Path) -> None:
    sysfs.jetson(tmp_path)
    meter = find_meter(tmp_path, on_gpu=True)
    assert meter is not None and meter.period_s == LEAST_PERIOD_S
    sysfs.put(tmp_path, {f"{HWMON}/hwmon1/update_interval": 140})
    meter = find_meter(tmp_path, on_gpu=True)
    assert meter is not None and meter.period_s == 0.14


def test_a_jetson_whose_rails_cannot_be_read_has_no_meter(tmp_path: Path) -> None:
    sysfs.jetson(tmp_path)
    sysfs.put(tmp_path, {f"{HWMON}/hwmon0/curr1_input": "broken"})
    assert find_meter(tmp_path, on_gpu=False) is None


def test_a_gpu_is_read_by_nvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    sensors.install(monkeypatch, nvml)
    meter = find_meter(tmp_path, on_gpu=True)
    assert isinstance(meter, EnergyCounters) and meter.sensor == "nvml"
    meter.start()
    nvml.energy_mj = 1_002_500
    assert meter.read().joules == pytest.approx(2.5)
    nvml.energy_mj = None
    assert meter.read() == MISSING
    assert find_meter(tmp_path, on_gpu=False) is None


def test_an_older_gpu_tells_its_power_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(energy_mj=None)
    sensors.install(monkeypatch, nvml)
    meter = find_meter(tmp_path, on_gpu=True)
    assert isinstance(meter, PowerMeter)
    meter.start()
    found = meter.read()
    assert found.joules == pytest.approx(250 * found.seconds)
    nvml.power_mw = None
    assert find_meter(tmp_path, on_gpu=True) is None


@pytest.mark.parametrize(
    ("count", "environment", "asked"),
    [
        (1, {}, [0]),
        (1, {"CUDA_VISIBLE_DEVICES": "0"}, [0]),
        (8, {"CUDA_VISIBLE_DEVICES": "GPU-5b2a, 1"}, ["GPU-5b2a"]),
        (8, {"CUDA_VISIBLE_DEVICES": "3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [3]),
        (8, {"CUDA_VISIBLE_DEVICES": "3"}, []),
        (8, {}, []),
        (1, {"CUDA_VISIBLE_DEVICES": "-1"}, []),
        (1, {"CUDA_VISIBLE_DEVICES": "MIG-5b2a"}, []),
    ],
)
def test_a_gpu_is_read_only_where_it_is_surely_the_one_that_programs_run_on(
    count: int,
    environment: dict[str, str],
    asked: list[object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    nvml = FakeNvml(count)
    sensors.install(monkeypatch, nvml)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (find_meter(tmp_path, on_gpu=True) is not None) == bool(asked)
    assert nvml.asked == asked


def test_without_a_driver_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensors.install(monkeypatch, FakeNvml(installed=False))
    assert find_meter(tmp_path, on_gpu=True) is None
