"""The features of points come from their networks, whether or not they ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dlas.bench.processes.inline import Inline
from dlas.bench.store.cache import Cache
from dlas.errors import CorruptArtifact
from dlas.networks.operators import at_batch
from dlas.stack import Operator
from dlas.sweep.engine.planned import network_operators
from dlas.sweep.engine.planning import Plan, Planner
from dlas.sweep.study.study import Study
from tests.fixtures.engine import rows, run

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

STUDY = """
name = "operators"
[axes]
dataset = [{ name = "random", size = 8, images = 16, classes = 4 }]
model = ["tests.fixtures.tiny:TinyModel"]
compiler = ["torch_eager"]
hardware = [{ name = "local_cpu", threads = 1 }]
batch = [8]
[measure]
repeats = 2
slices = 1
seconds = 0.1
layer_repeats = 2
"""
NOT_OF_THE_NETWORK = {
    "latency_s",
    "algorithm",
    "options",
    "declined",
    "nonzeros",
    "fused",
    "tail",
    "padding_value",
}
NOT_OF_THE_NETWORK |= {"input_layout", "output_layout", "reads", "views"}


def of_network(layer: Operator) -> dict[str, object]:
    """Return what the network decides of a row's layer."""
    return {name: value for name, value in layer.items() if name not in NOT_OF_THE_NETWORK}


def operators_of(cache: Cache, plan: Plan, batch: int) -> list[Operator]:
    """Return the operators of a point's network at a batch."""
    return at_batch(network_operators(cache, plan.artifacts()["network"]), batch)


def test_a_row_without_times_of_layers_tells_all_operators(tmp_path: Path) -> None:
    study = Study.parse(STUDY.replace("layer_repeats = 2", "layer_repeats = 0"))
    run(study, tmp_path, Inline)
    (row,) = rows(tmp_path)
    cache = Cache(tmp_path / "cache")
    (point,) = study.points()
    known = operators_of(cache, Planner(study.measure, cache.root).plan(point), 8)
    assert [of_network(layer) for layer in row.layers] == [of_network(layer) for layer in known]
    assert {layer["latency_s"] for layer in row.layers} == {None}


def test_operators_of_a_point_are_those_of_its_row_and_known_before_it_runs(tmp_path: Path) -> None:
    study = Study.parse(STUDY)
    run(study, tmp_path, Inline)
    (row,) = rows(tmp_path)
    assert row.status == "ok", row.reason
    cache = Cache(tmp_path / "cache")
    planner = Planner(study.measure, cache.root)
    (point,) = study.points()
    found = {layer["name"]: of_network(layer) for layer in operators_of(cache, planner.plan(point), 8)}
    assert found == {layer["name"]: of_network(layer) for layer in row.layers}
    assert {"Conv", "BatchNormalization", "Relu", "Gemm"} <= {layer["operator"] for layer in found.values()}
    never = operators_of(cache, planner.plan(replace(point, batch=5)), 5)
    assert {layer["inputs"][0][0] for layer in never} == {5} and len(never) == len(found)
    other = replace(point, seed=point.seed + 1)
    with pytest.raises(CorruptArtifact, match="not in the cache"):
        operators_of(cache, planner.plan(other), 8)
