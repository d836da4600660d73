from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest

from dlas.stack import Compression, Data, MeasureSettings, Network, Workspace
from dlas.sweep.engine.planning import Planner, Step
from dlas.sweep.study.limits import Limits
from dlas.sweep.study.point import Choice, Point
from dlas.sweep.study.study import Study
from tests.fixtures.onnx_graphs import small_graph


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


def planned(axes: dict[str, Any], root: Path) -> list[Step]:
    (point,) = Study({"compiler": "torch_eager", **axes}).points()
    return [step for step in Planner(MeasureSettings(), root).plan(point).steps if step.name == "network"]


def test_a_network_that_is_not_trained_has_a_limit_of_its_own(tmp_path: Path) -> None:
    pruned = {"chain": [{"name": "weight_pruning", "level": 0.25}, "float16"]}
    trained = planned({"dataset": "digits", "model": "cifar_mobilenet_v1", "compression": pruned}, tmp_path)
    assert [step.time_limit for step in trained] == ["network", "network", "conversion"]
    small = tmp_path / "small.onnx"
    onnx.save(small_graph(), small)
    for axes in (
        {"dataset": "digits", "model": {"name": "cifar_mobilenet_v1", "recipe": "none"}},
        {"dataset": "random", "model": "cifar_mobilenet_v1", "compression": "float16"},
        {"dataset": "digits", "model": {"name": "onnx", "path": str(small)}},
    ):
        assert {step.time_limit for step in planned(axes, tmp_path)} == {"conversion"}
    assert Limits().conversion < Limits().network
