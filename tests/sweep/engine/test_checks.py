"""What is refused before a sweep, and points that end before their first step."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from dlas.sweep.study.study import Study
from tests.fixtures.onnx_graphs import small_graph


def branching(path: Path) -> None:
    """Write the small graph with a choice between two functions of its output."""
    model = small_graph()
    graph = model.graph
    graph.node[-1].output[0] = "scores"
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operator, ["scores"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        )
        for name, operator in (("then", "Relu"), ("else", "Neg"))
    }
    graph.node.extend(
        [
            helper.make_node("ReduceSum", ["scores"], ["sum"], keepdims=0),
            helper.make_node("Cast", ["sum"], ["positive"], to=TensorProto.BOOL),
            helper.make_node("If", ["positive"], ["y"], **branches),
        ]
    )
    onnx.checker.check_model(model)
    onnx.save(model, path)


@pytest.mark.parametrize("branches", [True, False])
def test_operators_that_run_graphs_are_named_where_a_compiler_has_no_code_for_them(
    branches: bool, tmp_path: Path
) -> None:
    path = tmp_path / "network.onnx"
    branching(path) if branches else onnx.save(small_graph(), path)
    noise = {"name": "random", "size": 8, "images": 4, "classes": 10}
    model = {"name": "onnx", "path": str(path)}
    study = Study({"dataset": noise, "model": model, "compiler": ["untuned", "onnxruntime"]})
    reasons = {point.compiler.name: point.unsupported() for point in study.points()}
    said = "untuned has no code for the ONNX operator If, which runs graphs inside it"
    assert reasons == {"untuned": said if branches else None, "onnxruntime": None}
