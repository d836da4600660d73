"""What the row of a point says of its network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.outcome import Outcome
from dlas.bench.store.cache import Artifact, Cache
from dlas.stack import MeasureSettings
from dlas.sweep.engine.planning import Plan, Planner
from dlas.sweep.engine.point_run import PointRun
from dlas.sweep.engine.row import make_row
from tests.fixtures.tiny import the_point

DENSE = {"macs": 400, "effective_macs": 400, "reached": {}}


class Known(Cache):
    """A cache that knows networks by their keys, and nothing else."""

    def __init__(self, networks: dict[str, Any]) -> None:
        self.networks = networks

    def get(self, kind: str, key: str) -> Artifact | None:
        """Return a network."""
        facts = self.networks.get(key) if kind == "network" else None
        return Artifact(kind, key, Path(), facts, {}) if facts else None


def planned(compression: str, folder: Path) -> Plan:
    return Planner(MeasureSettings(), folder).plan(the_point(f"compression = [{compression}]"))


@pytest.mark.parametrize(
    ("compression", "network", "expected"),
    [
        ('{ name = "leaf", path = "11" }', {"macs": 100, "effective_macs": 50, "reached": {"path": "11"}}, 8),
        ('{ name = "leaf", path = "00" }', {**DENSE, "reached": {"path": "00"}}, 1),
        ('{ name = "weight_pruning", level = 0.5 }', {**DENSE, "reached": {"ratio": 0.5}}, 2),
    ],
)
def test_the_work_that_compression_saves_is_expected_of_its_speed(
    compression: str, network: dict[str, Any], expected: float, tmp_path: Path
) -> None:
    plan = planned(compression, tmp_path)
    cache = Known({plan.steps[0].key: DENSE, plan.artifacts()["network"]: network})
    row = make_row("study", PointRun(plan, tmp_path / "log"), Outcome("ok"), cache)
    assert row.expected_speedup == pytest.approx(expected)
