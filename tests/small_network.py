"""A small network with everything in it that lowering has to tell apart."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import nn

from dlas.datasets.digits import Digits
from dlas.models.cifar_resnet18 import CifarResnet18
from dlas.networks.scoring import score
from dlas.networks.torch_network import TorchNetwork
from dlas.stack import Data, Facts, Images

SHAPE = (3, 20, 20)
CLASSES = 10
EPOCHS = 2


class Small(nn.Module):
    """Convolutions with batch norm, a residual, depthwise, activations, pooling, concatenation, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first = nn.Conv2d(16, 16, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(16)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pointwise = nn.Conv2d(16, 24, 1)
        self.squeeze = nn.Conv2d(24, 24, 1)
        self.norm = nn.BatchNorm2d(40)
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(40, 256), nn.ReLU(), nn.Linear(256, CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.stem(x))
        inner = torch.relu(self.first_norm(self.first(x)))
        x = torch.relu(self.second(inner) + x)
        deep = nn.functional.relu6(self.depthwise(x))
        deep = nn.functional.silu(self.pointwise(deep))
        gate = torch.sigmoid(self.squeeze(deep.mean((2, 3), keepdim=True)))
        x = torch.relu(self.norm(torch.cat([x, deep * gate], 1)))
        outputs: torch.Tensor = self.classifier(nn.functional.avg_pool2d(x, 5).flatten(1))
        return outputs


def network(module: nn.Module | None = None, shape: tuple[int, int, int] = SHAPE) -> TorchNetwork:
    """Return a module as a network, its batch norms with statistics that matter."""
    torch.manual_seed(0)
    module = module or Small()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean = torch.empty(layer.num_features).uniform_(-0.2, 0.2)
            layer.running_var = torch.empty(layer.num_features).uniform_(0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.uniform_(layer.bias, -0.2, 0.2)
    return TorchNetwork(module, Facts(shape, CLASSES))


@functools.cache
def trained() -> tuple[TorchNetwork, Data]:
    """Return a narrow residual network, trained for seconds, and the digits that it was trained on."""
    data = Digits().load()
    torch.manual_seed(0)
    module = CifarResnet18(width=0.125).module(data.shape, data.classes).train()
    optimizer = torch.optim.Adam(module.parameters(), 3e-3)
    for _ in range(EPOCHS):
        for indices in torch.randperm(len(data.train)).split(64):
            pictures, labels = (torch.from_numpy(part) for part in data.train[indices.tolist()])
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(pictures), labels).backward()
            optimizer.step()
    network = TorchNetwork(module, Facts(data.shape, data.classes, trained=True))
    network.count()
    score(network, data)
    return network, data


def images(batch: int, shape: tuple[int, int, int] = SHAPE) -> Images:
    """Return random images [batch, c, h, w]."""
    return np.random.default_rng(1).standard_normal((batch, *shape)).astype(np.float32)


def error(actual: Images, expected: Images) -> float:
    """Return the relative error that a network's tolerance bounds."""
    return float(np.abs(actual - expected).max() / np.abs(expected).max())
