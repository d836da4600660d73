"""What a measurement asks of a board, on machines that consist of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.bench.measuring.machine import Machine
from dlas.bench.measuring.on_board import use_cores


def board(root: Path, speeds: list[int], file: str = "cpu_capacity") -> Machine:
    """Return a machine whose cores have these capacities, or highest frequencies."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").write_text(f"Cpus_allowed_list:\t0-{len(speeds) - 1}\n")
    for number, speed in enumerate(speeds):
        folder = root / f"sys/devices/system/cpu/cpu{number}"
        folder.mkdir(parents=True)
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(f"{speed}\n")
    return Machine(root)


def bound(machine: Machine, threads: int, which: str) -> set[int]:
    """Return the cores that a process is bound to, which this one is not."""
    asked: list[list[int]] = []
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "TVM_BIND_THREADS",
            *(f"{n}_NUM_THREADS" for n in ("TVM", "OMP", "MKL", "OPENBLAS", "NUMEXPR")),
        ):
            patch.setenv(name, os.environ.get(name, "1"))
        patch.setattr(os, "sched_setaffinity", lambda _pid, cores: asked.append(cores))
        use_cores(threads, which, machine)
        assert os.environ["TVM_NUM_THREADS"] == str(threads)
    return set(asked[0])


def test_cores_are_of_the_kind_that_is_asked_for(tmp_path: Path) -> None:
    machine = board(tmp_path, [446, 446, 446, 446, 1024, 1024, 1024, 1024])
    assert bound(machine, 4, "fastest") == bound(machine, 4, "big") == {4, 5, 6, 7}
    assert bound(machine, 2, "little") == {0, 1}
    assert bound(machine, 8, "all") == set(range(8))
    with pytest.raises(ValueError, match="5 threads, but the server may use 4 little cores"):
        use_cores(5, "little", machine)


def test_cores_differ_by_frequency_where_the_kernel_tells_no_capacity(tmp_path: Path) -> None:
    machine = board(tmp_path, [1_800_000, 1_800_000, 2_400_000, 2_400_000], "cpufreq/cpuinfo_max_freq")
    assert bound(machine, 2, "fastest") == bound(machine, 2, "big") == {2, 3}


def test_cores_of_one_kind_may_differ_in_their_highest_frequency(tmp_path: Path) -> None:
    speeds = [4_900_000, 5_000_000, 4_900_000, 3_700_000, 3_800_000]
    machine = board(tmp_path, speeds, "cpufreq/cpuinfo_max_freq")
    assert bound(machine, 3, "big") == {0, 1, 2}
    assert bound(machine, 2, "little") == {3, 4}


def test_of_three_kinds_the_largest_step_parts_big_from_little(tmp_path: Path) -> None:
    machine = board(tmp_path, [250, 250, 250, 250, 780, 780, 780, 1024])
    assert bound(machine, 4, "big") == {4, 5, 6, 7}
    assert bound(machine, 4, "little") == {0, 1, 2, 3}


def test_the_kernels_own_kinds_come_before_speeds(tmp_path: Path) -> None:
    machine = board(tmp_path / "arm", [1_900_000, 2_000_000, 2_400_000], "cpufreq/cpuinfo_max_freq")
    for processor, register in enumerate(("0x410fd034", "0x414fd0b1", "0x413fd0b0")):
        file = tmp_path / f"arm/sys/devices/system/cpu/cpu{processor}/regs/identification/midr_el1"
        file.parent.mkdir(parents=True)
        file.write_text(f"{register}\n")
    assert bound(machine, 2, "big") == {1, 2}, "two Cortex-A76 of different revisions, and a Cortex-A53"
    speeds = [5_000_000, 4_900_000, 4_600_000, 4_600_000]
    machine = board(tmp_path / "intel", speeds, "cpufreq/cpuinfo_max_freq")
    for name, processors in (("cpu_core", "0-1"), ("cpu_atom", "2-3")):
        folder = tmp_path / "intel/sys/devices" / name
        folder.mkdir(parents=True)
        (folder / "cpus").write_text(f"{processors}\n")
    assert bound(machine, 2, "little") == {2, 3}


def test_slightly_faster_cores_are_no_kind_of_their_own(tmp_path: Path) -> None:
    machine = board(tmp_path, [5_000_000, 4_900_000, 4_900_000], "cpufreq/cpuinfo_max_freq")
    with pytest.raises(ValueError, match="no difference between its 3 cores"):
        use_cores(1, "big", machine)


def test_cores_that_do_not_differ_are_neither_big_nor_little(tmp_path: Path) -> None:
    machine = board(tmp_path, [1024, 1024])
    with pytest.raises(ValueError, match="no difference between its 2 cores"):
        use_cores(1, "big", machine)
    with pytest.raises(ValueError, match="3 threads, but the server may use 2 cores"):
        use_cores(3, "fastest", machine)
