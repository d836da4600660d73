"""What networks become in Relax, however torch writes their operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dlas.lowering.graph.from_torch import FRESH, VIEWS, operator
from dlas.lowering.graph.graph import as_array, as_constant
from dlas.lowering.lower import lower
from dlas.networks.torch.network import TorchNetwork
from dlas.schedules.direct import Direct
from dlas.stack import Facts
from tests.fixtures.lowering import Calls, run
from tests.fixtures.small_network import error, images, network

SHAPE = (4, 8, 8)


class Everything(nn.Module):
    """Every operator that is translated as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4, eps=0.3)
        self.layer_norm = nn.LayerNorm(4, eps=0.2)
        self.linear = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.gelu(self.norm(self.conv(x)).relu_()) + F.hardtanh(x, -0.3, 0.4)
        first, second = torch.cat([F.silu(y), F.hardswish(x)], 1).tanh().chunk(2, 1)
        y = F.max_pool2d(first, 3, 2, 1) * F.avg_pool2d(second, 2).sigmoid()
        y = torch.softmax(F.elu(F.selu(y), 0.3), 1) - F.leaky_relu(y, 0.2) / (F.relu6(y * 9) + 1)
        y = y * F.hardsigmoid(F.relu(F.adaptive_avg_pool2d(y, 1)))
        rows = self.layer_norm(y.permute(0, 2, 3, 1).contiguous()).view(-1, 16, 4)
        rows = F.dropout(rows.transpose(1, 2).reshape(-1, 8, 8), training=False, inplace=True)
        outputs: torch.Tensor = self.linear((rows * rows.select(1, 0).unsqueeze(1)).mean(1).flatten(1))
        return outputs


def test_every_operator_that_stays_whole_is_right(tmp_path: Path) -> None:
    everything, x = network(Everything(), SHAPE), images(2, SHAPE)
    program = torch.export.export(everything.module, (torch.from_numpy(x),))
    called = {operator(node) for node in program.graph.nodes if node.op == "call_function"}
    assert called == FRESH | VIEWS
    assert error(run(lower(everything, Direct(), 2), tmp_path, x), everything.reference(x)) < 1e-5


@pytest.mark.parametrize(
    "norm",
    [nn.BatchNorm2d(4, eps=0.3, affine=False), nn.BatchNorm2d(4, eps=0.3, track_running_stats=False)],
    ids=["without scale", "statistics of the batch"],
)
def test_other_batch_norms_are_right(norm: nn.Module, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(4, 4, 3), norm, nn.Flatten())
    normed, x = TorchNetwork(module, Facts(SHAPE, 4)), images(2, SHAPE)
    assert error(run(lower(normed, Direct(), 2), tmp_path, x), normed.reference(x)) < 1e-5


def changed_and_read(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = conv(x)
    return F.relu_(y) * (y + 1)


def changed_through_a_view(conv: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = conv(x)
    return y * F.relu_(y.flatten(2)).mean() + y


@pytest.mark.parametrize(
    "use",
    [changed_and_read, changed_through_a_view, lambda conv, x: F.celu(F.mish(conv(x)), 0.3)],
    ids=["changed and read", "changed through a view", "operators that are taken apart"],
)
def test_other_operators_are_right(use: Callable[..., torch.Tensor], tmp_path: Path) -> None:
    calls, x = network(Calls(use), SHAPE), images(2, SHAPE)
    assert error(run(lower(calls, Direct(), 2), tmp_path, x), calls.reference(x)) < 1e-5


def test_training_on_leaves_what_was_lowered_as_it_was() -> None:
    module = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(144, 5))
    lowered = lower(network(module, SHAPE), Direct(), 1)
    before = {name: array.copy() for name, array in lowered.parameters.items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert all(np.array_equal(lowered.parameters[name], before[name]) for name in before)
    assert any(array.any() for array in before.values())


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool"])
def test_constants_hold_views_as_they_are(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for view in (array, array.T, np.broadcast_to(array, (4, 2, 3)), array[:, :1]):
        constant = as_constant(view)
        assert str(constant.ty.dtype) == dtype
        np.testing.assert_array_equal(as_array(constant), view)
