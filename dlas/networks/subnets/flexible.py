"""A network that holds all subnetworks: each has the middle of its kernels and the first of its channels.

References
----------
Once-for-All, section 3.3; the sandwich rule: J. Yu and T. Huang, "Universally Slimmable Networks", 2019.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from dlas.networks.subnets.modules import subnet
from dlas.networks.subnets.shapes import Shapes, small
from dlas.networks.subnets.written import MOST, STAGES, draw, parse

SMALLEST = ",".join(["33:33"] * STAGES)
LARGEST = ",".join(["7777:6666"] * STAGES)
DRAWN = 2
"""Subnetworks of a step beside the largest and the smallest."""
BLOCK = re.compile(r"block(\d+)\.(.*)")
Tensors = Mapping[str, torch.Tensor]


class SharedWeights(nn.Module):
    """The largest subnetwork, in whose weights all others are.

    In training, a batch goes through the largest, the smallest and two drawn subnetworks, and the outputs of
    all are returned one below the other.  Batch norms keep the statistics of the largest.

    Parameters
    ----------
    channels : int
        Of the images.
    classes : int
    """

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.sizes = channels, classes
        self.largest = subnet(small(), parse(LARGEST), channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map images [n, c, h, w] to outputs [n, classes], in training to [4 n, classes]."""
        outputs: torch.Tensor = self.largest(x)
        if not self.training:
            return outputs
        rng = np.random.default_rng(int(torch.randint(2**31, ())))
        texts = [SMALLEST, *(draw("ofa", rng) for _ in range(DRAWN))]
        return torch.cat([outputs, *(self._through(text, x) for text in texts)])

    def _through(self, text: str, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs of a subnetwork in training."""
        skeleton = _skeleton(small(), text, *self.sizes)
        named = {**dict(self.largest.named_parameters()), **dict(self.largest.named_buffers())}
        tensors = narrowed(named, skeleton, text)
        # Its statistics are no part of the network.
        buffers = {name: tensors[name].clone() for name, _ in skeleton.named_buffers()}
        outputs: torch.Tensor = functional_call(skeleton, {**tensors, **buffers}, (x,))
        return outputs

    def extracted(self, text: str) -> nn.Sequential:
        """Return a subnetwork as a module of its own, with copies of its weights."""
        made = subnet(small(), parse(text), *self.sizes)
        made.load_state_dict(narrowed(self.largest.state_dict(), made, text))
        return made.eval()


@functools.lru_cache(maxsize=64)
def _skeleton(shapes: Shapes, text: str, channels: int, classes: int) -> nn.Module:
    """Return a subnetwork without weights, in training mode."""
    with torch.device("meta"):
        return subnet(shapes, parse(text), channels, classes).train()


def narrowed(largest: Tensors, module: nn.Module, text: str) -> dict[str, torch.Tensor]:
    """Return the tensors of a subnetwork: views of those of the largest.

    Parameters
    ----------
    largest : mapping
        By name.
    module : torch.nn.Module
        The subnetwork, whose names and shapes count.
    """
    places = [
        stage * MOST + layer
        for stage, (kernels, _) in enumerate(parse(text))
        for layer in range(len(kernels))
    ]
    found = {}
    for name, value in module.state_dict().items():
        block = BLOCK.fullmatch(name)
        source = f"block{places[int(block[1])]}.{block[2]}" if block else name
        found[name] = _part(largest[source], value.shape)
    return found


def _part(value: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return the first channels of a tensor, and the middle of its kernels."""
    for axis, wanted in enumerate(shape):
        start = (value.shape[axis] - wanted) // 2 if axis >= 2 else 0
        value = value.narrow(axis, start, wanted)
    return value
