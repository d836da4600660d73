from __future__ import annotations

import itertools
import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dlas.bench.processes.workers import Handlers, Reply, RequestFailed, WorkerPool, last_line


def handlers() -> Handlers:
    return {"double": double, "sleep": sleep, "fail": fail, "abort": abort, "hoard": hoard, "beat": beat}


def double(value: int) -> Reply:
    return {"value": 2 * value, "pid": os.getpid()}


def sleep(seconds: float) -> Reply:
    start = time.monotonic()
    time.sleep(seconds)
    return {"span": [start, time.monotonic()]}


def fail(kind: str) -> Reply:
    if kind == "python":
        raise ValueError("first line\nlast line\n")
    raise RequestFailed(kind, "as it was said")


def abort() -> Reply:
    os.abort()


def hoard(gib: float) -> Reply:
    return {"bytes": np.ones(int(gib * 2**30), np.int8).nbytes}


def beat(path: str) -> Reply:
    for _ in range(1000):
        with open(path, "a") as out:
            out.write(f"{time.monotonic()}\n")
        time.sleep(0.01)
    return {}


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2, handlers) as pool:
        yield pool


def test_work_is_shared_and_workers_outlast_it(pool: WorkerPool) -> None:
    pids = set()
    for _ in range(2):
        messages = [{"do": "double", "value": value} for value in range(9)]
        replies = {number: reply for number, _, reply in pool.map(messages, 10)}
        assert [replies[number]["value"] for number in range(9)] == [2 * value for value in range(9)]
        pids |= {reply["pid"] for reply in replies.values()}
    assert pids == {worker.pid for worker in pool.workers}


def test_work_is_done_side_by_side(pool: WorkerPool) -> None:
    spans = [reply["span"] for _, _, reply in pool.map([{"do": "sleep", "seconds": 1.5}] * 2, 20)]
    assert max(start for start, _ in spans) < min(end for _, end in spans)


def test_the_others_stand_still_while_one_is_asked(pool: WorkerPool, tmp_path: Path) -> None:
    pool.workers[1].send({"do": "beat", "path": str(tmp_path / "beat")})
    while not (tmp_path / "beat").exists():
        time.sleep(0.01)
    pool.call(0, 10, do="sleep", seconds=0.5)
    time.sleep(0.2)
    beats = [float(line) for line in (tmp_path / "beat").read_text().splitlines()]
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) >= 0.4


@pytest.mark.parametrize(
    ("message", "limit", "failed", "said", "gone"),
    [
        ({"do": "abort"}, 30, "crash", "killed by SIGABRT", True),
        ({"do": "sleep", "seconds": 60}, 0.3, "hang", "took longer than 0.3 s", True),
        ({"do": "fail", "kind": "python"}, 30, "run", "ValueError: last line", False),
        ({"do": "fail", "kind": "wrong"}, 30, "wrong", "as it was said", False),
    ],
)
def test_trouble_is_an_answer_and_the_next_worker_is_ready(
    pool: WorkerPool, message: dict[str, object], limit: float, failed: str, said: str, gone: bool
) -> None:
    before = pool.workers[0].pid
    reply = pool.call(0, limit, **message)
    assert reply["failed"] == failed
    assert said in reply["words"]
    assert reply.get("gone", False) == gone == (pool.workers[0].pid != before)
    assert pool.call(0, 10, do="double", value=2)["value"] == 4


def test_one_in_trouble_does_not_disturb_the_rest(pool: WorkerPool) -> None:
    messages: list[dict[str, object]] = [{"do": "double", "value": value} for value in range(6)]
    messages[2:2] = [{"do": "abort"}, {"do": "sleep", "seconds": 60}]
    replies = {number: reply for number, _, reply in pool.map(messages, 3)}
    assert [number for number, reply in replies.items() if "failed" in reply] == [2, 3]
    assert sum(reply.get("value", 0) for reply in replies.values()) == 2 * sum(range(6))


def test_too_much_memory_is_an_answer(pool: WorkerPool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pool.call(0, 30, do="hoard", gib=0.1)["bytes"] > 0
    reply = pool.call(0, 30, do="hoard", gib=64)
    assert reply["failed"] == "run"
    assert "emory" in reply["words"]


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    parent = os.fork()
    if parent == 0:
        pool = WorkerPool(2, handlers)
        pool.workers[0].send({"do": "sleep", "seconds": 60})
        os.kill(pool.workers[1].pid, signal.SIGSTOP)
        note.with_suffix(".new").write_text(" ".join(str(worker.pid) for worker in pool.workers))
        note.with_suffix(".new").rename(note)
        time.sleep(60)
    while not note.exists():
        time.sleep(0.01)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    end = time.monotonic() + 60
    for pid in map(int, note.read_text().split()):
        while Path(f"/proc/{pid}/stat").exists() and _state(pid) != "Z":
            assert time.monotonic() < end
            time.sleep(0.02)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_errors_are_quoted_by_their_last_line() -> None:
    assert last_line(ValueError("  ")) == "ValueError"
    assert last_line(RuntimeError("IR:\n  for i in ...\nError message: not affine\n")) == (
        "RuntimeError: Error message: not affine"
    )
    assert len(last_line(ValueError("x" * 10_000))) == 300
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY  # only workers are limited
