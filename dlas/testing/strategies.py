"""The contract of strategies of adaptive measuring: repeatable, and interrupted anywhere without loss."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from dlas.prediction.adaptive.loop import Loop, LoopBudget, Strategy
from dlas.sweep.engine.planning import Planner
from dlas.sweep.engine.session import Session
from dlas.sweep.engine.workers import Workers
from dlas.sweep.rows.results import Results, Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

FAILS = 7
"""One point in so many fails."""


def check_strategy(make: Callable[[Path], Strategy], points: int = 20) -> None:
    """Check the contract of a strategy on made-up times, some of whose points fail.

    - It asks for points of its study, none twice in a folder, and its line is one line at any time.
    - It ends, or goes on until the budget is used.
    - Equal strategies that are told the same ask for the same.
    - Interrupted anywhere it goes on: what has a row is not measured again, and as much is measured in all.

    Parameters
    ----------
    make : callable
        Returns a new strategy, whose cache is in the folder that it is given.
    points : int
        The budget.

    Raises
    ------
    AssertionError
    """
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        whole, again = (_run(make, root, name, points) for name in ("whole", "again"))
        assert whole.measured, "it asks for no point at all"
        assert whole.measured == again.measured, "equal strategies that are told the same ask for others"
        for count in {1, len(whole.measured) // 2, len(whole.measured) - 1} - {0}:
            name = f"interrupted-{count}"
            first = _run(make, root, name, points, interrupted=count)
            rest = _run(make, root, name, points)
            twice = [each for each, times in Counter(first.measured + rest.measured).items() if times > 1]
            assert not twice, f"interrupted after {count} points, it asks for these again: {twice}"
            total = len(first.measured) + len(rest.measured)
            expected = len(whole.measured)
            assert total == expected, f"interrupted after {count} points, it ends at {total}, not {expected}"


@dataclass(frozen=True)
class MadeUpTimes(Session):
    """Writes rows with made-up times, without running anything."""

    folder: Path = Path()
    """Of the loop."""
    interrupted: int | None = None
    """Points after which Ctrl-C is pressed."""
    measured: list[tuple[str, str]] = field(default_factory=list)

    def measure(self, study: Study, points: Sequence[Point], folder: Path) -> list[Row]:
        """Write a row for each point that has none, one after the other."""
        planner, rows = Planner(study.measure, self.root), []
        known, place = {point.id for point in study.points()}, str(folder.relative_to(self.folder))
        with closing(Results(folder)) as results:
            for point in points:
                assert point.id in known, f"it asks for {point.id}, which is no point of {study.name}"
                assert (place, point.id) not in self.measured, f"it asks for {point.id} twice"
                if len(self.measured) == self.interrupted:
                    raise KeyboardInterrupt
                self.measured.append((place, point.id))
                rows.append(_row(point, planner.plan(point).key, study))
                results.append(rows[-1])
        return rows


def _row(point: Point, key: str, study: Study) -> Row:
    """Return the row of a point, whose time follows from its id."""
    number = int(point.id[:8], 16)
    row = Row(**point.content(), id=point.id, key=key, study=study.name, status="ok", latency_s=[])
    if number % FAILS == 0:
        row.status, row.step, row.reason = "failed", "build", "it is made to fail"
    else:
        row.latency_s = [1e-3 * (1 + number % 97 / 97)] * 3
    return row


def _run(
    make: Callable[[Path], Strategy], root: Path, name: str, points: int, interrupted: int | None = None
) -> MadeUpTimes:
    """Run a strategy in a folder, and return the session with what was measured."""
    strategy, said = make(root / "cache"), list[str]()
    folder = root / name
    session = MadeUpTimes(root / "cache", Workers("inline"), 0, folder=folder, interrupted=interrupted)
    loop = Loop(strategy, session, folder, LoopBudget(points=points), said.append)
    try:
        loop.run()
    except KeyboardInterrupt:
        assert said == [f"interrupted; the same command goes on: {strategy.line()}"]
    line = strategy.line()
    assert line and "\n" not in line, f"it says {line!r} of how far it is, not one line"
    return session
