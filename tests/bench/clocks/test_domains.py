"""Steps that devices tell, what pinning a clock changes, and requests that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.bench.clocks.domain import ClockDomain, ClockSteps
from dlas.bench.clocks.finding import find_clocks
from dlas.bench.clocks.nvpmodel import PowerMode, find_power_mode
from dlas.bench.clocks.request import ClockRequest
from dlas.errors import InputError, Unsupported
from tests.fixtures import sysfs
from tests.fixtures.sysfs import FakeKernel

ALL = range(8)


def planned(domain: ClockDomain, hz: float) -> list[tuple[str, str | None, str]]:
    """Return file, value found and value to write, of each change."""
    return [(each.place.rpartition("/")[2], each.found, each.value) for each in domain.plan(hz)]


def test_a_jetson_has_as_many_settings_as_the_paper_says(tmp_path: Path) -> None:
    clocks = find_clocks(ALL, on_gpu=True, root=sysfs.jetson(tmp_path))
    counts = [len(clocks[name].steps_hz().hz) for name in ("cpu", "gpu", "memory")]
    assert counts == [29, 14, 9]
    assert clocks["cpu"].steps_hz().hz[-1] == 2.2656e9
    assert clocks["memory"].steps_hz().hz[0] == 204e6


def test_cores_of_two_kinds_have_the_steps_that_both_have(tmp_path: Path) -> None:
    root = sysfs.big_little(tmp_path)
    little, big, both = (find_clocks(cores, False, root)["cpu"] for cores in ((0, 1), (4,), (3, 4)))
    assert little.steps_hz().hz[-1] == 1.844e9
    assert big.steps_hz().hz[-1] == 2.362e9
    assert both.steps_hz().hz == (1.018e9, 1.21e9)
    assert {each.place.split("/")[-2] for each in both.plan(1.21e9)} == {"policy0", "policy4"}
    assert {each.place.split("/")[-2] for each in big.plan(1.21e9)} == {"policy4"}


def test_intel_tells_a_range(tmp_path: Path) -> None:
    cpu = find_clocks(range(4), False, sysfs.intel(tmp_path))["cpu"]
    assert cpu.steps_hz() == ClockSteps((0.8e9, 3.7e9), between=True)
    assert planned(cpu, 1.5e9)[:2] == [
        ("scaling_min_freq", "800000", "1500000"),
        ("scaling_max_freq", "3700000", "1500000"),
    ]
    assert "governor" not in str(cpu.plan(1.5e9))  # it has no userspace


def test_the_governor_comes_first_and_limits_never_cross(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    cpu = find_clocks((0,), False, root)["cpu"]
    assert planned(cpu, 1.1904e9) == [
        ("scaling_governor", "schedutil", "userspace"),
        ("scaling_min_freq", "115200", "1190400"),
        ("scaling_max_freq", "2265600", "1190400"),
        ("scaling_setspeed", None, "1190400"),
    ]
    sysfs.put(root, {f"{sysfs.POLICIES}/policy0/scaling_max_freq": 499200})
    assert [name for name, *_ in planned(cpu, 1.1904e9)][1:3] == ["scaling_max_freq", "scaling_min_freq"]


def test_a_clock_that_userspace_has_set_is_found(tmp_path: Path) -> None:
    cpu = find_clocks((0,), False, sysfs.jetson(tmp_path, governor="userspace"))["cpu"]
    assert ("scaling_setspeed", "2265600", "1190400") in planned(cpu, 1.1904e9)
    assert "governor" not in str(planned(cpu, 1.1904e9))


def test_memory_of_a_jetson_is_locked_before_it_is_set(tmp_path: Path) -> None:
    memory = find_clocks(ALL, True, sysfs.jetson(tmp_path))["memory"]
    expected = [("mrq_rate_locked", "0", "1"), ("rate", "1600000000", "2133000000")]
    assert planned(memory, 2.133e9) == expected
    assert memory.observed_hz() == (1.6e9,)


def test_memory_without_a_list_tells_a_range(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    (root / sysfs.EMC_STEPS).unlink()
    assert find_clocks(ALL, True, root)["memory"].steps_hz() == ClockSteps((204e6, 2.133e9), between=True)


def test_a_step_that_is_lacking_is_refused_with_the_nearest_two(tmp_path: Path) -> None:
    clocks = find_clocks(ALL, True, sysfs.jetson(tmp_path))
    ClockRequest(1.1904e9, 1.377e9, 2.133e9).check(clocks)
    with pytest.raises(InputError) as refused:
        ClockRequest(gpu_hz=0.7e9).check(clocks)
    assert str(refused.value) == (
        "`gpu_hz=700000000` is none of the 14 steps of the device (the nearest are 675750000 and 828750000)"
    )


@pytest.mark.parametrize("hz", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_clock_is_refused(tmp_path: Path, hz: float) -> None:
    with pytest.raises(InputError, match="positive number"):
        ClockRequest(cpu_hz=hz).check(find_clocks(ALL, True, sysfs.jetson(tmp_path)))


def test_a_clock_outside_a_range_is_refused(tmp_path: Path) -> None:
    clocks = find_clocks(range(4), False, sysfs.intel(tmp_path))
    ClockRequest(cpu_hz=1.23456e9).check(clocks)
    with pytest.raises(InputError, match="between 800000000 and 3700000000"):
        ClockRequest(cpu_hz=5e9).check(clocks)


@pytest.mark.parametrize(("tree", "domain"), [("jetson", "gpu"), ("big_little", "memory"), ("jetson", "cpu")])
def test_a_missing_domain_is_said_with_those_there_are(tmp_path: Path, tree: str, domain: str) -> None:
    root = sysfs.lack(sysfs.TREES[tree](tmp_path), domain)
    clocks = find_clocks(ALL, True, root)
    assert domain not in clocks and len(clocks) == 2
    with pytest.raises(Unsupported, match=f"no such clock to set .there are: {next(iter(clocks))}_hz, "):
        ClockRequest(**{f"{domain}_hz": 1e9}).check(clocks)


def test_values_that_are_no_numbers_are_no_steps(tmp_path: Path) -> None:
    root = sysfs.big_little(tmp_path)
    sysfs.put(root, {f"{sysfs.DEVFREQ}/e82c0000.mali/available_frequencies": "none of them"})
    sysfs.put(root, {f"{sysfs.DEVFREQ}/ddrfreq/cur_freq": "<busy>"})
    clocks = find_clocks(ALL, True, root)
    assert set(clocks) == {"cpu", "memory"}
    assert clocks["memory"].observed_hz() == ()


def test_a_power_mode_caps_clocks(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    mode = find_power_mode(root, lambda: "NV Fan Mode:quiet\nNV Power Mode: MODE_15W\n2\n")
    assert mode == PowerMode("MODE_15W", {"cpu": 1.1904e9, "gpu": 670e6, "memory": 1.3312e9})
    clocks = find_clocks(ALL, True, root)
    ClockRequest(gpu_hz=675.75e6).check(clocks, mode)  # the step that 670 MHz means
    with pytest.raises(Unsupported, match="MODE_15W allows up to 670000000"):
        ClockRequest(gpu_hz=828.75e6).check(clocks, mode)
    assert find_power_mode(root, lambda: "NV Power Mode: MAXN\n0\n") == PowerMode("MAXN", {})


def test_no_power_mode_where_nothing_tells_one(tmp_path: Path) -> None:
    assert find_power_mode(sysfs.intel(tmp_path / "intel")) is None
    root = sysfs.jetson(tmp_path / "jetson")
    assert find_power_mode(root, lambda: None) is None
    assert find_power_mode(root, lambda: "cannot be asked") is None


def test_a_fake_kernel_refuses_limits_that_cross(tmp_path: Path) -> None:
    kernel = FakeKernel(sysfs.intel(tmp_path))
    with pytest.raises(OSError, match="Invalid argument"):
        kernel.write(f"{sysfs.POLICIES}/policy0/scaling_min_freq", "3800000")
