"""Sequences of holding clocks, errors, kills and changes of others end with the settings found at first."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dlas.bench.clocks import guard
from dlas.bench.clocks.finding import find_clocks
from dlas.bench.clocks.guard import SysfsFiles
from dlas.bench.clocks.holding import hold
from dlas.bench.clocks.records import DeviceRecords, recover, turn
from dlas.bench.clocks.request import ClockRequest
from tests.fixtures import sysfs
from tests.fixtures.processes import descendants, wait_for

OTHERS = 4242000
"""What somebody else sets: no step of any tree."""


@dataclass
class KillingFiles(SysfsFiles):
    """Kills this process, and its guard if that is to go first, before or after some write."""

    writes: int
    after: bool
    guard_too: bool
    done: int = field(default=0)

    def write(self, place: str, text: str | None) -> None:
        self.done += 1
        if self.done == self.writes and not self.after:
            self.kill()
        super().write(place, text)
        if self.done == self.writes:
            self.kill()

    def kill(self) -> None:
        if self.guard_too:
            for pid in descendants(os.getpid()):
                os.kill(pid, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


class Sequence:
    """What happens to a tree, drawn at random from a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.chance = random.Random(seed)
        write = self.chance.choice(list(sysfs.TREES.values()))
        governor = self.chance.choice(["userspace", "performance"])
        self.root = write(folder, governor)
        self.records = folder / "records"
        self.changed = folder / "changed"
        """The files that somebody else has changed, one a line."""
        self.told: list[str] = []
        clocks = find_clocks(range(8), True, self.root)
        self.clocks = find_clocks((5,), True, self.root) if len(clocks) == 3 else clocks
        self.expected = sysfs.settings(self.root)

    def run(self, steps: int) -> None:
        """Let some things happen, and check the settings after each."""
        events = [self._held, self._error, self._killed, self._killed_writing, self._both_killed]
        for _ in range(steps):
            event = self.chance.choice([*events, self._both_killed_writing, self._killed_restoring])
            event()
            self.told += recover(self.records)
            changed = self.changed.read_text().split() if self.changed.exists() else []
            self.expected |= dict.fromkeys(changed, str(OTHERS))
            assert sysfs.settings(self.root) == self.expected, event.__name__
            assert [line.split()[0] for line in self.told] == changed, event.__name__
            assert not [*self.records.rglob("*.*")], event.__name__

    def _hold(self, inside: Callable[[], None], ways: SysfsFiles | None = None) -> None:
        """Hold some clocks while something happens."""
        asked = {}
        for name in self.chance.sample(sorted(self.clocks), self.chance.randint(1, len(self.clocks))):
            asked[f"{name}_hz"] = self.chance.choice(self.clocks[name].steps_hz().hz)
        files = {"file": ways or SysfsFiles(self.root)}
        with hold(
            ClockRequest(**asked),
            self.clocks,
            "board",
            self.told.append,
            folder=self.records,
            root=self.root,
            ways=files,
            settles_s=0,
        ):
            inside()

    def _in_fork(self, inside: Callable[[], None], ways: SysfsFiles | None = None) -> None:
        """Do so in a child, which is killed meanwhile, and wait until its guard is done."""
        pid = os.fork()
        if not pid:
            try:
                self._hold(inside, ways)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        self.chance.random()  # the child drew from a copy
        with turn(DeviceRecords.of(self.records, "board"), "board", lambda line: None):
            pass

    def _held(self) -> None:
        self._hold(self._change)

    def _error(self) -> None:
        def fail() -> None:
            raise RuntimeError

        with pytest.raises(RuntimeError):
            self._hold(fail)

    def _killed(self) -> None:
        self._changed_and_killed(guard_too=False)

    def _both_killed(self) -> None:
        self._changed_and_killed(guard_too=True)

    def _changed_and_killed(self, guard_too: bool) -> None:
        def change_and_die() -> None:
            self._change()
            KillingFiles(self.root, 0, after=False, guard_too=guard_too).kill()

        self._in_fork(change_and_die)

    def _killed_writing(self, guard_too: bool = False) -> None:
        # Every request writes to the processors or a device at least once.
        writes = self.chance.choice([1, 1, 2])
        killer = KillingFiles(self.root, writes, self.chance.random() < 0.5, guard_too)
        self._in_fork(killer.kill, killer)

    def _both_killed_writing(self) -> None:
        self._killed_writing(guard_too=True)

    def _killed_restoring(self) -> None:
        """Both are killed, and the next one that restores is, too."""
        self._both_killed()
        pid = os.fork()
        if not pid:
            try:
                killer = KillingFiles(self.root, self.chance.choice([1, 2]), True, False)
                told = recover(self.records, {"file": killer})
                guard.tell(DeviceRecords.of(self.records, "board").new(), told)  # it was not killed
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    def _change(self) -> None:
        """Let somebody else change something or nothing."""
        if self.chance.random() < 0.5:
            return
        record = guard.load(next(self.records.rglob("*.json")))
        clocks = {each.place for each in record.settings if each.place.endswith(("_freq", "/rate"))}
        # What is already somebody else's stays as it was found.
        free = sorted(place for place in clocks if self.expected[place] != str(OTHERS))
        if free:
            place = self.chance.choice(free)
            sysfs.put(self.root, {place: OTHERS})
            with self.changed.open("a") as file:
                file.write(f"{place}\n")


@pytest.mark.parametrize("seed", range(20))
def test_sequences_end_with_what_was_found(tmp_path: Path, seed: int) -> None:
    Sequence(seed, tmp_path).run(1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_many_longer_sequences_end_with_what_was_found(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 50):
        (tmp_path / str(seed)).mkdir()
        Sequence(seed, tmp_path / str(seed)).run(4)


def test_a_fork_of_the_holder_does_not_keep_its_guard_from_restoring(tmp_path: Path) -> None:
    sequence = Sequence(0, tmp_path)
    read, write = os.pipe()

    def fork_and_die() -> None:
        if not os.fork():
            os.close(write)
            os.read(read, 1)  # until the test ends
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if not pid:
        try:
            sequence._hold(fork_and_die)
        finally:
            os._exit(1)
    os.waitpid(pid, 0)
    os.close(read)
    try:
        wait_for(lambda: not [*sequence.records.rglob("*.json")], 10)
        assert sysfs.settings(sequence.root) == sequence.expected
    finally:
        os.close(write)
