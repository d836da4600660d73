"""The loop: what a strategy asks for is measured, noted and gone on with; a random one is all it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.prediction.adaptive.loop import Batch, Loop, LoopBudget, Strategy
from dlas.prediction.adaptive.share.strategy import ShareStrategy
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.study import Study
from dlas.testing import check_strategy

STUB = "tests.fixtures.stubs:Stub"
AXES: dict[str, Any] = {
    "dataset": f"{STUB}Dataset",
    "model": {"name": f"{STUB}Model", "factor": [1.0, 2.0, 3.0]},
    "algorithm": f"{STUB}Algorithm",
    "compiler": {"name": f"{STUB}Compiler", "number": [0, 1, 2]},
    "hardware": {"name": f"{STUB}Hardware", "place": "loop"},
    "batch": [1, 2],
}
STUDY = Study(axes=AXES, name="loop")
"""18 points."""

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


class RandomStrategy(Strategy):
    """Measures points at random, a few at a time.

    Parameters
    ----------
    study : Study
    seed : int
    size : int
        Points of a batch.
    """

    def __init__(self, study: Study, seed: int = 0, size: int = 4) -> None:
        self.study, self.size = study, size
        points = list(study.points())
        self.order = [points[place] for place in np.random.default_rng(seed).permutation(len(points))]
        self.seconds: dict[str, float | None] = {}

    def ask(self) -> Batch | None:
        """Return the next points that have no row."""
        left = [point for point in self.order if point.id not in self.seconds]
        return Batch(self.study, left[: self.size]) if left else None

    def tell(self, rows: Sequence[Row], place: str) -> None:
        """Note how long points took."""
        self.seconds |= {row.id: min(row.latency_s, default=None) for row in rows}

    def line(self) -> str:
        """Return the shortest time so far."""
        times = [seconds for seconds in self.seconds.values() if seconds is not None]
        return f"{len(self.seconds)} points, the fastest takes {min(times, default=float('nan')):.3g} s"


def test_a_random_strategy_keeps_the_contract() -> None:
    check_strategy(lambda _: RandomStrategy(STUDY))
    check_strategy(lambda _: RandomStrategy(STUDY), points=7)


def test_a_share_keeps_the_contract() -> None:
    check_strategy(lambda cache: ShareStrategy(STUDY, 0.5, "rest", cache), points=9)


class Forgetful(RandomStrategy):
    """Asks for everything again when it is resumed."""

    def resume(self, rows: Any) -> int:
        return 0


class Undecided(RandomStrategy):
    """Asks for other points each time it is made."""

    made = 0

    def __init__(self, study: Study) -> None:
        super().__init__(study, seed=Undecided.made)
        Undecided.made += 1


class Talkative(RandomStrategy):
    """Says more than a line."""

    def line(self) -> str:
        return "one\nanother"


class Repeating(RandomStrategy):
    """Asks for the same point for ever."""

    def tell(self, rows: Sequence[Row], place: str) -> None:
        pass


@pytest.mark.parametrize(
    ("strategy", "said"),
    [
        (Forgetful, "it asks for these again"),
        (Undecided, "told the same ask for others"),
        (Talkative, "not one line"),
        (Repeating, "twice"),
    ],
)
def test_what_breaks_the_contract_is_found(strategy: Callable[[Study], Strategy], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_strategy(lambda _: strategy(STUDY))


def test_an_interrupted_loop_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    append = RandomStrategy.tell

    def interrupting(self: RandomStrategy, rows: Sequence[Row], place: str) -> None:
        append(self, rows, place)
        if len(self.seconds) == 8:
            os.kill(os.getpid(), 2)

    monkeypatch.setattr(RandomStrategy, "tell", interrupting)
    with Session.open("inline", cache=tmp_path / "cache") as session, pytest.raises(KeyboardInterrupt):
        Loop(RandomStrategy(STUDY), session, tmp_path / "out", say=said.append).run()
    assert said[0].startswith("interrupted; the same command goes on: 8 points, the fastest takes")
    before = {row.id: row.started for row in read_rows(tmp_path / "out")}
    monkeypatch.undo()
    with Session.open("inline", cache=tmp_path / "cache") as session:
        strategy = RandomStrategy(STUDY)
        Loop(strategy, session, tmp_path / "out", LoopBudget(points=12), said.append).run()
    after = {row.id: row.started for row in read_rows(tmp_path / "out")}
    assert len(before) == 8 and len(after) == len(strategy.seconds) == 12 and len(said) == 1
    assert before.items() <= after.items(), "nothing is measured twice"
    assert dlas.read(tmp_path / "out")["status"].eq("ok").all()


def test_a_loop_ends_where_its_minutes_are_used(tmp_path: Path) -> None:
    clock = [0.0]

    class Slow(RandomStrategy):
        def tell(self, rows: Sequence[Row], place: str) -> None:
            super().tell(rows, place)
            clock[0] += 31.0 if rows else 0.0

    strategy = Slow(STUDY)
    budget = LoopBudget(minutes=1, now=lambda: clock[0])
    with Session.open("inline", cache=tmp_path / "cache") as session:
        Loop(strategy, session, tmp_path / "out", budget).run()
    assert len(strategy.seconds) == 8, "two batches"
