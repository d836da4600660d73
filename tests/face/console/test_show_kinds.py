"""``dlas show`` of a row's operators by kind."""

from __future__ import annotations

from pathlib import Path

from dlas.stack import Layer
from tests.fixtures.commands import Command
from tests.fixtures.rows import row, write

LAYERS: list[Layer] = [
    {"name": "first", "operator": "Conv", "fused": ["Relu"], "latency_s": 2e-3, "backward_s": 7e-3},
    {"name": "second", "operator": "Conv", "fused": ["Relu"], "latency_s": 4e-3},
    {"name": "pool", "operator": "MaxPool", "latency_s": 2e-3},
]


def test_operators_are_counted_by_kind(tmp_path: Path, dlas_here: Command) -> None:
    shown = row(20, layers=LAYERS)
    printed = dlas_here("show", str(write(tmp_path, [shown])), shown.id).stdout
    assert "2 kinds by time" in printed
    first = next(line.split() for line in printed.splitlines() if line.split()[:3] == ["Conv", "+", "Relu"])
    assert (
        first[3:4] == ["2"] and "75.0%" in first and "7" in {cell.rstrip("0").rstrip(".") for cell in first}
    )
    assert any(line.split()[:2] == ["MaxPool", "1"] for line in printed.splitlines())
