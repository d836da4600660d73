"""Clocks are set, held and restored; refusals, lies and changes of others are told."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.clocks import guard
from dlas.bench.clocks.applied import AppliedClock, HeldClocks
from dlas.bench.clocks.finding import find_clocks
from dlas.bench.clocks.guard import ClockRecord, ClockSetting, restore
from dlas.bench.clocks.holding import hold
from dlas.bench.clocks.records import recover
from dlas.bench.clocks.request import ClockRequest
from dlas.errors import InputError, Unsupported
from tests.fixtures import sysfs
from tests.fixtures.processes import descendants
from tests.fixtures.sysfs import FakeKernel

REQUEST = ClockRequest(1.1904e9, 675.75e6, 2.133e9)
MAX = f"{sysfs.POLICIES}/policy4/scaling_max_freq"


@contextmanager
def held(root: Path, request: ClockRequest = REQUEST, **kernel: Any) -> Iterator[HeldClocks]:
    """Hold clocks of all processors and the GPU of a fake tree."""
    ways = {"file": FakeKernel(root, **kernel)}
    clocks = find_clocks(range(8), True, root)
    said: list[str] = []
    with hold(
        request, clocks, "board", said.append, folder=root / "records", root=root, ways=ways, settles_s=0
    ) as now:
        yield now
    assert said == now.told


def test_what_was_found_is_restored(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    with held(root) as clocks:
        now = sysfs.settings(root)
        assert now[MAX] == "1190400"
        assert now[f"{sysfs.POLICIES}/policy4/scaling_governor"] == "userspace"
        assert now[f"{sysfs.EMC}/rate"] == "2133000000"
        read = clocks.read()
    assert read["cpu"] == AppliedClock(1.1904e9, 1.1904e9, 1.1904e9)
    assert all(clock.honoured for clock in read.values())
    assert sysfs.settings(root) == before
    assert not [*root.glob("records/*/*.*")]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_was_found_is_restored_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    root = sysfs.jetson(tmp_path, governor="userspace")
    before = sysfs.settings(root)
    with pytest.raises(error), held(root):
        raise error
    assert sysfs.settings(root) == before


def test_the_guard_may_be_killed(tmp_path: Path) -> None:
    root = sysfs.big_little(tmp_path)
    before = sysfs.settings(root)
    with held(root, ClockRequest(cpu_hz=1.21e9)):
        os.kill(descendants(os.getpid())[-1], signal.SIGKILL)
    assert sysfs.settings(root) == before


def test_nothing_happens_where_nothing_is_asked_for(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    with held(root, ClockRequest()) as clocks:
        assert clocks.read() == {}
    assert not (root / "records").exists()


@pytest.mark.parametrize(
    ("file", "number"),
    [
        ("*policy6/scaling_max_freq", errno.EACCES),
        ("*policy6/scaling_setspeed", errno.EINVAL),
        ("*gv11b/governor", errno.EBUSY),
    ],
)
def test_a_device_that_refuses_is_unsupported(tmp_path: Path, file: str, number: int) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    said = rf"refuses '\w+' in sys/.*{file[1:]}: {os.strerror(number)}"
    with pytest.raises(Unsupported, match=said), held(root, refuses={file: number}):
        pass
    assert sysfs.settings(root) == before


def test_a_setting_that_cannot_be_read_is_unsupported(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    (root / MAX).unlink()
    with pytest.raises(Unsupported, match="scaling_max_freq"), held(root):
        pass


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        ({"runs": {"*/policy2": 0.5}}, "running at 595200000 Hz instead of 1190400000"),
        ({"applies": {"*/policy2/scaling_max_freq": 1.5}}, "set to 1785600000 Hz instead of 1190400000"),
    ],
)
def test_a_device_that_lies_is_told(tmp_path: Path, kernel: dict[str, Any], told: str) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    with held(root, **kernel) as clocks:
        read = clocks.read()
    assert (read["cpu"].honoured, read["cpu"].reason) == (False, told)
    assert read["gpu"].honoured
    assert sysfs.settings(root) == before


def test_two_percent_are_no_lie() -> None:
    assert AppliedClock(1e9, 1.019e9, 0.981e9).honoured
    assert AppliedClock(1e9, None, None).honoured
    assert not AppliedClock(1e9, None, 0.97e9).honoured


def test_what_somebody_else_changes_is_left_and_told(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    with held(root) as clocks:
        sysfs.put(root, {MAX: 1420800})
    assert sysfs.settings(root) == before | {MAX: "1420800"}
    assert clocks.told == [f"{MAX} stays at '1420800': somebody has changed it from '1190400'"]


def test_a_limit_that_the_kernel_lowers_to_cool_is_restored(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    with held(root) as clocks:
        sysfs.throttle(root, share=0.3)
        assert sysfs.get(root, MAX) == "679680"
        assert not clocks.read()["cpu"].honoured
    assert clocks.told == []
    assert sysfs.settings(root) == before


def test_what_cannot_be_restored_is_told_and_tried_again(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    before = sysfs.settings(root)
    with held(root) as clocks:
        (root / MAX).rename(tmp_path / "unplugged")
    assert clocks.told == [f"{MAX} cannot be set back to '2265600': No such file or directory"]
    with pytest.raises(Unsupported, match=r"an earlier run cannot be restored: .*No such file"), held(root):
        pass
    (tmp_path / "unplugged").rename(root / MAX)
    assert recover(root / "records") == []
    assert sysfs.settings(root) == before


def test_the_second_one_waits_and_says_for_whom(tmp_path: Path) -> None:
    root, said, order = sysfs.jetson(tmp_path), [], []
    waiting = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    def second() -> None:
        clocks = find_clocks(range(8), True, root)
        with hold(REQUEST, clocks, "board", say, folder=root / "records", root=root, settles_s=0):
            order.append("second")

    thread = threading.Thread(target=second)
    with held(root):
        thread.start()
        assert waiting.wait(10)
        assert recover(root / "records") == []  # somebody holds them
        assert sysfs.get(root, MAX) == "1190400"
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert said == [f"waiting for process {os.getpid()}, which holds the clocks of board"]


def test_a_restart_of_the_machine_has_reset_the_clocks(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    path = _record(root, ClockSetting("file", MAX, "2112000", "1190400", "written", "1190400"))
    sysfs.put(root, {MAX: 1190400, sysfs.BOOT: "another"})
    assert recover(root / "records") == []
    assert sysfs.get(root, MAX) == "1190400"
    assert not path.exists()


def test_what_was_not_written_yet_is_not_touched(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path)
    _record(root, ClockSetting("file", MAX, "2112000", "1190400"))
    assert recover(root / "records") == []
    assert sysfs.get(root, MAX) == "2265600"


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        '{"settings": 1}',
        '{"settings": [], "root": "tree"}',
        '{"root": "/", "settings": [1]}',
        '{"root": "/", "settings": [{"kind": "file"}]}',
        json.dumps(
            {"root": "/", "settings": [vars(ClockSetting("file", "etc/passwd", "x", "y", "written", "z"))]}
        ),
        json.dumps(
            {"root": "/", "settings": [vars(ClockSetting("file", "sys/../etc", "x", "y", "written", "z"))]}
        ),
        json.dumps(
            {"root": "/", "settings": [vars(ClockSetting("shell", "sys/x", "x", "y", "written", "z"))]}
        ),
    ],
)
def test_a_damaged_record_is_named(tmp_path: Path, damaged: str) -> None:
    root = sysfs.jetson(tmp_path)
    path = _record(root)
    path.write_text(damaged)
    with pytest.raises(InputError, match=f"cannot restore clocks from .*{path.name}"):
        recover(root / "records")
    assert path.exists()


def test_every_order_of_restoring_suits_a_strict_kernel(tmp_path: Path) -> None:
    """From any limits to any step, as far as any write, and back: no lower limit is above the upper one."""
    chance = random.Random(1)
    root = sysfs.big_little(tmp_path)
    cpu = find_clocks((4,), False, root)["cpu"]
    for _ in range(30):
        lower, upper = sorted(chance.choices(sysfs.BIG_KHZ, k=2))
        policy = f"{sysfs.POLICIES}/policy4"
        sysfs.put(root, {f"{policy}/scaling_min_freq": lower, f"{policy}/scaling_max_freq": upper})
        before = sysfs.settings(root)
        kernel = FakeKernel(root)
        settings = cpu.plan(1e3 * chance.choice(sysfs.BIG_KHZ))
        for setting in settings[: chance.randint(0, len(settings))]:
            kernel.write(setting.place, setting.value)
            setting.state, setting.applied = "written", kernel.read(setting.place)
        record = ClockRecord(tmp_path / "record.json", settings, guard.boot_id(root), str(root))
        assert restore(record, {"file": kernel}) == []
        assert sysfs.settings(root) == before


def _record(root: Path, *settings: ClockSetting) -> Path:
    folder = root / "records/device-board"
    folder.mkdir(parents=True)
    record = ClockRecord(folder / "left.json", [*settings], guard.boot_id(root), str(root))
    record.save()
    return record.path


def test_a_record_is_restored_where_it_was_made(tmp_path: Path) -> None:
    root = sysfs.jetson(tmp_path / "tree")
    found = sysfs.settings(root)
    records = tmp_path / "records" / "device-x"
    records.mkdir(parents=True)
    plan = find_clocks([0], False, root)["cpu"].plan(1190400e3)
    for setting in plan:
        guard.SysfsFiles(root).write(setting.place, setting.value)
        setting.state, setting.applied = "written", setting.value
    ClockRecord(records / "left.json", plan, guard.boot_id(root), str(root)).save()
    assert sysfs.settings(root) != found
    assert recover(tmp_path / "records") == [] and sysfs.settings(root) == found
