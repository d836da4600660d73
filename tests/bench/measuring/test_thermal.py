"""Temperature and throttling, on machines that consist of files and on a GPU that NVML tells of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.thermal import Thermal
from dlas.bench.measuring.throttling import FIRMWARE
from tests.fixtures import sensors, sysfs
from tests.fixtures.sensors import FakeNvml

HELD = "sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"


def watched(
    root: Path, meanwhile: Callable[[], object] = lambda: None, on_gpu: bool = False
) -> dict[str, Any]:
    """Return the fields of a measurement during which something happens."""
    observer = Thermal.here(Machine(root), on_gpu)
    assert observer is not None
    observer.before()
    meanwhile()
    return Thermal.fields([Slice([1.0], 1, {"thermal": observer.after()})])


@pytest.mark.parametrize("tree", ["jetson", "big_little", "intel"])
def test_a_cool_machine_is_not_throttled_and_a_hot_one_is(tree: str, tmp_path: Path) -> None:
    root = sysfs.TREES[tree](tmp_path)
    assert watched(root) == {"temperature_c": 45.0, "throttled": False, "throttled_reason": None}
    found = watched(root, lambda: sysfs.throttle(root))
    assert (found["temperature_c"], found["throttled"]) == (99.5, True)
    assert found["throttled_reason"]


def test_counters_tell_what_happened_between_two_looks(tmp_path: Path) -> None:
    root = sysfs.intel(tmp_path)
    found = watched(root, lambda: (sysfs.throttle(root), sysfs.cool(root)))
    assert found["throttled_reason"] == "cpu0 core_throttle_count rose by 1"


def test_a_limit_that_falls_is_throttling_where_nothing_else_tells(tmp_path: Path) -> None:
    root = sysfs.lack(sysfs.big_little(tmp_path), "temperatures")
    sysfs.put(root, {"sys/class/thermal/thermal_zone0/temp": 60000})
    assert watched(root)["throttled"] is None, "limits that stay say nothing"
    found = watched(root, lambda: sysfs.put(root, {HELD: 1863000}))
    assert found["throttled_reason"] == "policy4 limited to 1.86 of 2.36 GHz"


def test_a_limit_that_a_point_asks_for_is_no_throttling(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    observer = Thermal.here(Machine(root), on_gpu=False)
    assert observer is not None
    sysfs.put(root, {HELD: 1190400})  # clocks are held from the turn on, and observers are there before
    observer.before()
    assert Thermal.fields([Slice([1.0], 1, {"thermal": observer.after()})])["throttled"] is False


def test_a_fan_that_turns_is_no_throttling_and_files_that_are_broken_tell_nothing(tmp_path: Path) -> None:
    zones = "sys/class/thermal"
    sysfs.put(tmp_path, {f"{zones}/cooling_device0/type": "gpu-fan", f"{zones}/cooling_device0/cur_state": 3})
    sysfs.put(tmp_path, {f"{zones}/thermal_zone0/temp": "broken"})
    assert set(watched(tmp_path).values()) == {None}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("0", None),
        ("50005", "firmware: throttled"),
        ("0xe", "firmware: frequency capped, throttled, soft limit of temperature"),
        ("50000", None),
    ],
)
def test_the_firmware_of_a_raspberry_pi_tells_what_holds_now(
    said: str, reason: str | None, tmp_path: Path
) -> None:
    sysfs.put(tmp_path, {FIRMWARE: said})
    found = watched(tmp_path)
    assert (found["throttled"], found["throttled_reason"]) == (reason is not None, reason)


def test_of_a_gpu_nvml_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(reasons=0x1)
    sensors.install(monkeypatch, nvml)
    found = watched(sysfs.intel(tmp_path), on_gpu=True)
    assert found == {"temperature_c": 61.0, "throttled": False, "throttled_reason": None}, "it was only idle"
    nvml.reasons = 0x24
    found = watched(tmp_path, on_gpu=True)
    assert (
        found["throttled_reason"] == "GPU held back by a limit of its power, the driver, for its temperature"
    )
    nvml.reasons = nvml.celsius = None
    assert set(watched(tmp_path, on_gpu=True).values()) == {None}


def test_a_gpu_without_nvml_is_a_part_of_its_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sensors.install(monkeypatch, None)
    root = sysfs.jetson(tmp_path)
    assert watched(root, lambda: sysfs.throttle(root), on_gpu=True)["throttled"] is True


def test_a_machine_that_tells_nothing_is_not_watched(tmp_path: Path) -> None:
    assert Thermal.here(Machine(tmp_path), on_gpu=False) is None
    empty = Thermal.fields([Slice([1.0], 1, {})])
    assert empty == {"temperature_c": None, "throttled": None, "throttled_reason": None}
