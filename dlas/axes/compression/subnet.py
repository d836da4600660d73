"""A subnetwork out of a network that holds many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import nn

from dlas.networks.scoring import batches, score
from dlas.networks.subnets.drawn import DrawnSubnet, SubnetText
from dlas.networks.subnets.flexible import SharedWeights
from dlas.networks.subnets.modules import subnet
from dlas.networks.subnets.shapes import small
from dlas.networks.subnets.written import Space, parse
from dlas.networks.torch.network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, load_weights, read_weights
from dlas.stack import Compression, Data, Facts, Model, Network, Unsupported, Workspace


@dataclass(frozen=True)
class Subnet(DrawnSubnet, Compression):
    """One subnetwork of the model ``supernet``: the first channels, the middle of kernels, fewer layers.

    The statistics of its batch norms are estimated on the training images; nothing is trained.
    """

    subnet: SubnetText
    """As for the model ``ofa_mobilenet_v3``; or ``"drawn"``."""
    space: Space = "ofa"
    """Where subnetworks are drawn."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the subnetwork, evaluated in full where images have labels.

        Raises
        ------
        Unsupported
            If the network holds no subnetworks.
        """
        if not isinstance(network, TorchNetwork) or not isinstance(network.module, SharedWeights):
            raise Unsupported("only the model 'supernet' holds subnetworks")
        whole = network.module
        module = whole.extracted(self.subnet)
        if _is_whole(whole, module):
            workspace.say("it is the largest, whose statistics are known")
        else:
            _estimate_norms(module, data)
        removed = 1 - _size(module) / _size(whole)
        found = TorchNetwork(module, replace(network.facts, reached={"ratio": removed} if removed else {}))
        if found.facts.trained and data.labelled:
            workspace.say("evaluating")
            score(found, data)
        found.count()
        return found

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved subnetwork."""
        channels = facts.shape[0]
        network = TorchNetwork(subnet(small(), parse(self.subnet), channels, facts.classes), facts)
        path = folder / WEIGHTS_FILE
        load_weights(network.module, read_weights(path), str(path))
        return network


def _is_whole(whole: nn.Module, module: nn.Module) -> bool:
    """Return whether a subnetwork is the whole network."""
    return _size(module) == _size(whole)


def _size(module: nn.Module) -> int:
    return sum(value.numel() for value in module.parameters())


def _estimate_norms(module: nn.Module, data: Data) -> None:
    """Set the statistics of batch norms to those of all training images."""
    norms = [layer for layer in module.modules() if isinstance(layer, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    with torch.no_grad():
        module.train()
        for images, _ in batches(data.train):
            module(images)
    module.eval()
    for norm in norms:
        norm.momentum = 0.1
