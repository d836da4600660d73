from __future__ import annotations

import os
import signal

import numpy as np

from dlas.bench.processes.memory import exact_bytes, quick_bytes

MIB = 2**20


def test_memory_shared_by_forking_counts_once_where_it_is_looked_at_closely() -> None:
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        before = np.ones(100 * MIB, np.int8)
        for number in range(2):
            if os.fork() == 0:
                os.write(writing, bytes([number]) * int(before[0]))
                signal.pause()
        signal.pause()
    assert sorted(os.read(reading, 1) for _ in range(2)) == [b"\0", b"\1"]  # both are there
    quick, exact = quick_bytes(parent), exact_bytes(parent)
    for pid in (*_children(parent), parent):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert quick >= 300 * MIB
    assert 100 * MIB <= exact < quick


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as listed:
        return [int(number) for number in listed.read().split()]


def test_a_process_that_is_gone_holds_nothing() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert quick_bytes(pid) == exact_bytes(pid) == 0
