"""Run studies of stub parts through the real engine."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from dlas.engine.point_run import Summary
from dlas.engine.progress import Progress
from dlas.engine.sweep import Sweep
from dlas.processes.server import Server
from dlas.rows.results import Results, Row, read_rows
from dlas.store.cache import Cache
from dlas.study.study import Study

HEAD = """
name = "stub"
[axes]
dataset = ["tests.stubs:StubDataset"]
"""
USUAL = """
model = ["tests.stubs:StubModel"]
algorithm = ["tests.stubs:StubAlgorithm"]
compiler = ["tests.stubs:StubCompiler"]
hardware = ["tests.stubs:StubHardware"]
"""


def study_of(axes: str) -> Study:
    """Return a study of stub parts; an axis that ``axes`` leaves out is an ordinary stub."""
    given = {line.partition("=")[0].strip() for line in axes.splitlines()}
    usual = "\n".join(line for line in USUAL.splitlines() if line.partition("=")[0].strip() not in given)
    return Study.parse(HEAD + usual + "\n" + axes)


def run(study: Study, folder: Path, **options: Any) -> Summary:
    """Run a sweep to its end in this process; rows go to ``folder/out``."""
    server = Server()
    try:
        with Results(folder / "out") as results:
            cache = Cache(folder / "cache", **{k: options.pop(k) for k in ("limit",) if k in options})
            progress = Progress(0, Console(file=io.StringIO()), ["model", "batch"])
            return Sweep(study, results, cache, server, progress, **options).run()
    finally:
        server.close()


def rows(folder: Path) -> list[Row]:
    """Return the current rows."""
    return list(read_rows(folder / "out"))


def same(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Return what must be equal between two runs: everything but when and how long."""
    kept = ("id", "key", "status", "reason", "step", "latency_s", "accuracy", "error", "layers", "artifacts")
    return sorted(tuple(repr(getattr(row, name)) for name in kept) for row in rows)


def in_fork(work: Callable[[], object]) -> int:
    """Run ``work`` in a forked process and return its number; it leads no group of its own."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            work()
            code = 0
        finally:
            os._exit(code)
    return pid
