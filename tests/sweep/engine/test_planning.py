from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dlas.stack import Compression, Data, MeasureSettings, Network, Workspace
from dlas.sweep.engine.planning import Planner
from dlas.sweep.study.point import Choice, Point


@dataclass(frozen=True)
class Masks(Compression):
    """Reads a file of its own."""

    path: str

    def verify(self) -> None:
        if not Path(self.path).is_file():
            raise ValueError(f"no {self.path}")

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        return network


def chained(path: Path) -> Choice:
    links = (Choice("none"), Choice(f"{__name__}:Masks", (("path", str(path)),)))
    return Choice("none+masks", chain=links)


def network_key(compression: Choice, root: Path) -> str:
    stub: dict[str, Any] = {
        axis: Choice(f"tests.fixtures.stubs:Stub{axis.capitalize()}")
        for axis in ("dataset", "model", "compiler")
    }
    choices: dict[str, Any] = {
        "algorithm": Choice("direct"),
        "hardware": Choice("local_cpu"),
        "compression": compression,
    }
    planner = Planner(MeasureSettings(), root)
    return planner.plan(Point(**stub, **choices, batch=1, seed=0)).artifacts()["network"]


def test_what_a_chain_leaves_to_its_techniques_is_verified_and_counts(tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    with pytest.raises(ValueError, match=r"no .*masks$"):
        chained(masks).make("compression").verify()
    masks.write_text("1")
    chained(masks).make("compression").verify()
    key = network_key(chained(masks), tmp_path)
    assert network_key(chained(masks), tmp_path) == key
    masks.write_text("22")
    assert network_key(chained(masks), tmp_path) != key
