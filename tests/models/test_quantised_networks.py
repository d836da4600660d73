"""Whole networks in int8, at the size that they are made for, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlas.compression.int8 import Int8
from dlas.datasets.random import Random
from dlas.networks.onnx_network import OnnxNetwork
from dlas.stack import Workspace
from dlas.study import parts
from tests.fixtures.quantised_graphs import built

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SMALL = ["cifar_resnet18", "cifar_mobilenet_v1", "cifar_mobilenet_v2", "cifar_vgg16"]
EXACT = ["resnet18", "resnet50", "mobilenet_v2", "vgg16", "efficientnet_b0", *SMALL]
"""Networks all of whose operators ONNX Runtime computes in integers, or on single numbers."""
STEPS = {"densenet161": 3}
"""Networks with float32 operators, and the most steps of the output that ours may be apart."""


@pytest.mark.parametrize("name", [*EXACT, *STEPS])
def test_a_network_in_integers_is_right(name: str, tmp_path: Path) -> None:
    small = name in SMALL
    data = Random(size=32 if small else 224, images=8, classes=100).load()
    workspace = Workspace(0, tmp_path, say=lambda line: None)
    options = {"recipe": "none"} if small else {}
    dense = parts.make("model", name, options).build(data, workspace)
    made = Int8(calibration="none", images=8).compress(dense, data, workspace)
    assert isinstance(made, OnnxNetwork)
    x, _ = data.test[[0]]
    expected = made.reference(x)
    step = np.diff(np.unique(expected)).min()
    build, program = built(made, parts.make("algorithm", "blocked", {}), "hand", tmp_path / "build", 1)
    assert build.coverage is not None and build.coverage["integers"] == 1
    apart = np.rint((program.run(x) - expected) / step)
    assert np.abs(apart).max() <= STEPS.get(name, 0), (
        f"{np.mean(apart != 0):.2%} of the outputs are not equal"
    )
