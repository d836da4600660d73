"""What a study on a cluster costs where its rows are written: simulated machines, which measure at once.

python -m benchmarks.cluster [NODES] [POINTS]
"""

from __future__ import annotations

import functools
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dlas.bench.store.cache import Cache
from dlas.sweep.cluster.station import Given, Report, Told
from dlas.sweep.cluster.sweep import ClusterSweep, Post
from dlas.sweep.engine.point_run import Summary
from dlas.sweep.engine.progress import SilentProgress
from dlas.sweep.engine.writers import InMemoryRows, RowWriter
from dlas.sweep.rows.results import Results, Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study
from tests.fixtures.engine import HEAD, USUAL
from tests.fixtures.rows import row

A_REPORT = 64
"""Rows that a simulated machine has ready for each report."""
STUDY = Study.parse(HEAD + USUAL)


class Counted(InMemoryRows):
    """Rows that are counted and forgotten."""

    def append(self, row: Row) -> None:
        """Forget a row."""
        self.existing[row.id] = (row.status, row.key)


class Simulated(Post):
    """A machine that measures any number of points at once.

    Parameters
    ----------
    number : int
    """

    hardware = ("tests.fixtures.stubs:StubHardware",)

    def __init__(self, number: int) -> None:
        self.name = f"simulated {number}"
        self._given: deque[str] = deque()
        self._told, self._ended = 0, False

    def give(self, points: Sequence[Given]) -> None:
        """Take points."""
        self._given.extend(Point.of(content).id for content, _ in points)

    def report(self, seen: int) -> Report:
        """Return rows of the next points."""
        ids = [self._given.popleft() for _ in range(min(A_REPORT, len(self._given)))]
        told = [told for id in ids for told in (Told(id, _line(id)), Told(id, ended=True))]
        first, self._told = self._told, self._told + len(told)
        return Report(told, first, [], len(self._given), "", Summary(), self._ended)

    def end(self) -> None:
        """Tell that it has ended."""
        self._ended = True

    stop = end


@functools.cache
def _template() -> str:
    return row(id="the id").line()


def _line(id: str) -> str:
    return _template().replace("the id", id)


def points(count: int) -> Iterator[Point]:
    """Yield different points, ten of each network."""
    (point,) = STUDY.points()
    for number in range(count):
        yield replace(point, seed=number // 10, batch=1 + number % 10)


def main(nodes: int, count: int) -> None:
    """Print the milliseconds that a point costs, with rows on disk and without."""
    table = Table("rows", "nodes", "points", "ms a point", "peak resident MiB", box=None)
    with tempfile.TemporaryDirectory() as folder:
        kept = Counted(Path(folder))
        _measure(table, "counted", kept, nodes, count)
        with closing(Results(Path(folder) / "out")) as written:
            _measure(table, "written", written, nodes, min(count, 20_000))
    Console().print(table)


def _measure(table: Table, rows: str, writer: RowWriter, nodes: int, count: int) -> None:
    machines: list[Post] = [Simulated(number) for number in range(nodes)]

    def find(known: Collection[str]) -> list[Post]:
        found, machines[:] = list(machines), []
        return found

    with tempfile.TemporaryDirectory() as folder:
        cache = Cache(Path(folder))
        sweep = ClusterSweep(STUDY, writer, cache, find, SilentProgress(), 60.0, pause=lambda seconds: None)
        started = time.monotonic()
        summary = sweep.run(points(count))
    seconds = time.monotonic() - started
    assert summary.written["ok"] == count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row(rows, f"{nodes}", f"{count:,}", f"{seconds / count * 1e3:.2f}", f"{peak:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("100", "1000000")))
