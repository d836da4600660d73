"""Points that are planned: their networks are made, and neither built nor measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.face.api.planned import planned
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.study.reading import as_study

pytestmark = pytest.mark.usefixtures("same_threads_afterwards")

AXES = {
    "dataset": {"name": "random", "size": 8, "images": 16, "classes": 4},
    "model": "tests.fixtures.tiny:TinyModel",
    "hardware": {"name": "local_cpu", "threads": 1},
    "batch": [1, 3],
}


def test_kernels_of_a_study_are_told_at_each_batch_where_its_compilers_know_them(tmp_path: Path) -> None:
    study = {"axes": {**AXES, "compiler": ["onnxruntime", "torch_eager", "torch_compile"]}}
    made = planned(study, cache=tmp_path, steps="inline", progress="silent", kernels=True)
    told = {
        (row.compiler["name"], row.batch): each for row, each in zip(made.rows, made.kernels, strict=True)
    }
    assert {*told} == {(name, batch) for name in ("onnxruntime", "torch_eager") for batch in (1, 3)}
    assert {row.status for row in made.rows} == {PREDICTED} and all(row.device for row in made.rows)
    for (_, batch), layers in told.items():
        assert {layer["output"][0] for layer in layers} == {batch}
        assert all("latency_s" not in layer and "reads" not in layer for layer in layers)
    fused, single = told["onnxruntime", 1], told["torch_eager", 1]
    assert len(fused) < len(single) and any(layer["fused"] for layer in fused)
    assert made.failed == {"which kernels it runs is known only once they have run": 2}
    some = list(as_study(study).points())[:1]
    (row,) = planned(study, points=some, cache=tmp_path, steps="inline", progress="silent").rows
    assert row.id == some[0].id
    with pytest.raises(InputError, match="no point of the study can be predicted: which kernels it runs"):
        alone = {"axes": {**AXES, "compiler": "torch_compile"}}
        planned(alone, cache=tmp_path, steps="inline", progress="silent", kernels=True)
