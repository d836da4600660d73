"""Adaptive pooling whose output does not divide its input, as exporters get it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional

from dlas.axes.compilers.programs.onnx_graph import MODEL, write_graph
from dlas.networks.exported.files import export_module
from dlas.networks.exported.modules import module_of
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Facts

SHAPE = (3, 6, 10)


class Pooled(nn.Module):
    """Pools to more values, to fewer, along one dimension, along all, and evenly."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.AdaptiveAvgPool2d((7, None))
        self.square = nn.AdaptiveAvgPool2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        written = (
            self.square(self.rows(x)),
            functional.adaptive_avg_pool2d(x, (3, 5)),
            functional.adaptive_avg_pool1d(x.flatten(2), output_size=9),
            functional.adaptive_avg_pool3d(x, (2, 4, 10)),
        )
        return torch.cat([each.flatten(1) for each in written], 1)


@pytest.mark.parametrize("exported", [False, True], ids=["module", "program"])
def test_adaptive_pooling_with_uneven_windows_is_exported(exported: bool, tmp_path: Path) -> None:
    module = Pooled().eval()
    given = module_of(export_module(module, SHAPE)) if exported else module
    images = np.random.default_rng(0).standard_normal((2, *SHAPE), np.float32)
    write_graph(TorchNetwork(given, Facts(SHAPE, 1)), 2, tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / MODEL, providers=["CPUExecutionProvider"])
    (outputs,) = session.run(None, {"images": images})
    np.testing.assert_allclose(outputs, module(torch.from_numpy(images)).numpy(), atol=1e-6)
