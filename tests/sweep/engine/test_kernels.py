"""The kernels of points that were never built: those that their rows have once they were."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dlas.bench.processes.inline import Inline
from dlas.bench.store.cache import Cache
from dlas.errors import CorruptArtifact
from dlas.sweep.engine.planned import program_kernels
from dlas.sweep.engine.planning import Planner
from dlas.sweep.study.study import Study
from dlas.testing.kernels import match
from tests.fixtures.engine import rows, run

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

STUDY = """
name = "kernels"
[axes]
dataset = [{ name = "random", size = 8, images = 16, classes = 4 }]
model = ["tests.fixtures.tiny:TinyModel"]
compiler = ["onnxruntime", "torch_eager", "untuned"]
algorithm = ["direct"]
hardware = [{ name = "local_cpu", threads = 1 }]
batch = [2]
[measure]
repeats = 2
slices = 1
seconds = 0.1
layer_repeats = 1
"""


def test_kernels_are_told_before_a_program_is_built_and_are_those_of_its_row(tmp_path: Path) -> None:
    study = Study.parse(STUDY)
    run(study, tmp_path, Inline, until="kernels")
    cache = Cache(tmp_path / "cache")
    planner = Planner(study.measure, cache.root)
    points = {point.compiler.name: point for point in study.points()}
    plans = {name: planner.plan(point, kernels=True) for name, point in points.items()}
    keys = {name: plan.until("kernels").artifacts() for name, plan in plans.items()}
    assert not any((cache.root / "build").iterdir())
    assert len([*(cache.root / "kernels").iterdir()]) == 1  # two follow from the network's operators
    told = {name: program_kernels(cache, keys[name], points[name]) for name in points}
    shutil.rmtree(tmp_path / "out")
    run(Study.parse(STUDY.replace(', "untuned"', "")), tmp_path, Inline)
    for row in rows(tmp_path):
        found = match(told[row.compiler["name"]], row.layers)
        assert row.status == "ok" and not found.missing and not found.extra, found
    assert {"Conv", "Gemm"} <= {layer["operator"] for layer in told["untuned"]}
    kernels = plans["untuned"].kernels
    assert kernels is not None and plans["untuned"].until("build").steps[-1].name == "build"
    cache.discard("kernels", kernels.key)
    with pytest.raises(CorruptArtifact, match="not in the cache"):
        program_kernels(cache, keys["untuned"], points["untuned"])
