"""What a measurement asks of a board, on machines that consist of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.measuring.machine import Machine
from dlas.measuring.on_board import use_cores


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


def test_cores_that_do_not_differ_are_neither_big_nor_little(tmp_path: Path) -> None:
    machine = board(tmp_path, [1024, 1024])
    with pytest.raises(ValueError, match="no difference between its 2 cores"):
        use_cores(1, "big", machine)
    with pytest.raises(ValueError, match="3 threads, but the server may use 2 cores"):
        use_cores(3, "fastest", machine)
