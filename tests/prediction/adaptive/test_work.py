"""Multiply-adds of points: told by networks that were only made, by rows, or by what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from dlas.prediction.adaptive.share.multiply_adds import macs_of
from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.space import Space
from dlas.prediction.adaptive.share.work import work_of
from dlas.stack import Data, Network, Workspace
from dlas.sweep.engine.session import Session
from dlas.sweep.study.point import Choice
from dlas.sweep.study.study import Study
from tests.fixtures.rows import row, write
from tests.fixtures.stubs import StubModel

STUB = "tests.fixtures.stubs:Stub"
COUNTED = "tests.prediction.adaptive.test_work:Counted"

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")


@dataclass(frozen=True)
class Counted(StubModel):
    """As many multiply-adds as its factor says, millions; it refuses to be trained."""

    recipe: Literal["none", "short"] = "short"
    epochs: int | None = None

    def build(self, data: Data, workspace: Workspace) -> Network:
        """Return the network."""
        assert self.recipe == "none" and self.epochs is None, "nobody asked for a trained network"
        made: Any = super().build(data, workspace)
        found: Network = replace(made, facts=replace(made.facts, macs=int(self.factor * 1e6)))
        return found


def study(**axes: Any) -> Study:
    usual = {
        "dataset": f"{STUB}Dataset",
        "model": [
            {"name": COUNTED, "factor": [1.0, 2.0], "epochs": 3},
            {"name": COUNTED, "factor": 3.0, "trouble": "exception"},
        ],
        "compression": {"name": f"{STUB}Compression", "level": [0.25, 0.5]},
        "algorithm": f"{STUB}Algorithm",
        "compiler": f"{STUB}Compiler",
        "hardware": f"{STUB}Hardware",
        "batch": [1, 2],
    }
    return Study(axes={**usual, **axes})


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session.open("inline", cache=tmp_path / "cache") as opened:
        yield opened


def test_networks_tell_multiply_adds_untrained_and_uncompressed(tmp_path: Path, session: Session) -> None:
    asked = study()
    points = [*asked.points()]
    macs = macs_of(asked, points, tmp_path / "out", session)
    made = {model.make("model"): each for (_, model), each in macs.items()}
    by_factor = {model.factor: each for model, each in made.items() if isinstance(model, Counted)}
    assert by_factor == {1.0: 1e6, 2.0: 2e6}, "the one that fails is missing"
    assert not (tmp_path / "out").exists()
    space = Space.of(points, macs)
    assert {*space.macs[~np.isnan(space.macs)]} == {1e6, 2e6} and np.isnan(space.macs).sum() == 4
    work = work_of(space, {})
    assert {*np.round(work, 6)} == {-0.346574, 0.0, 0.346574}, "unknown ones are in the middle"


def test_rows_tell_multiply_adds_too(tmp_path: Path, session: Session) -> None:
    asked = study()
    points = [*asked.points()]
    broken = next(point for point in points if "trouble" in dict(point.model.options))
    content: dict[str, Any] = {"dataset": broken.dataset.content(), "model": broken.model.content()}
    pruned = {"name": f"{STUB}Compression", "level": 0.5}
    rows = [row(**content, macs=3_000_000), row(**content, compression=pruned, macs=1)]
    macs = macs_of(asked, points, write(tmp_path / "out", rows), session)
    assert sorted(macs.values()) == [1e6, 2e6, 3e6]


def test_one_network_is_not_made_for_it(tmp_path: Path, session: Session) -> None:
    asked = study(model={"name": COUNTED, "factor": 1.0})
    assert macs_of(asked, [*asked.points()], tmp_path / "out", session) == {}
    assert not (tmp_path / "cache" / "network").exists()


def test_what_nobody_told_follows_from_measured_points() -> None:
    points = [*study(compression="none").points()]
    known = {0: PointOutcome(1.0, macs=1e6), 2: PointOutcome(1.0, macs=4e6)}
    told = {(points[-1].dataset, points[-1].model): 2e6}
    work = work_of(Space.of(points, told), known)
    assert points[0].model != points[2].model and Choice("none") == points[0].compression
    assert work[2] - work[0] == pytest.approx(np.log(4))
    assert work[-1] - work[0] == pytest.approx(np.log(2))
