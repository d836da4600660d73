"""Tables of blocks: what a block takes is the median of a result, and what an interruption says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dlas.errors import Unfinished
from dlas.networks.subnets.shapes import ofa
from dlas.prediction.adaptive import blocks
from dlas.sweep.engine.session import Session
from dlas.sweep.study.point import Point
from tests.fixtures.rows import row


class Shaky:
    """A session whose rows are all unstable."""

    @property
    def part(self) -> Shaky:
        return self

    def check(self, *given: Any) -> None:
        """Refuse nothing."""

    def measure(self, study: Any, points: Sequence[Point], folder: Path) -> list[Any]:
        return [
            row(1, id=point.id, status="unstable", reason="slices differ", latency_s=[1e-3])
            for point in points
        ]


def test_no_block_has_the_time_of_an_unstable_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [*ofa(1.0).keys(112)[:2]]
    monkeypatch.setattr(blocks, "_names", lambda width, size: few)
    studies = blocks.block_studies([112], 1.0, "onnxruntime", "local_cpu", None, 0)
    with pytest.raises(Unfinished, match=r"has no time \(unstable: slices differ\)"):
        blocks.measure_tables(tmp_path, 1.0, studies, Shaky(), print)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*.yaml"))


def test_an_interruption_names_the_size_and_writes_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    name = blocks._names(1.0, 112)[0]
    monkeypatch.setattr(blocks, "_names", lambda width, size: [name])
    monkeypatch.setattr(Session, "measure", interrupted)
    studies = blocks.block_studies([112], 1.0, "onnxruntime", "local_cpu", None, 0)
    said: list[str] = []
    session = Session.open(cache=tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        blocks.measure_tables(tmp_path / "out", 1.0, studies, session, said.append)
    assert said == ["interrupted at size 112; the same command goes on"]
    assert not (tmp_path / "out").exists()
