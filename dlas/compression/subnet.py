"""A subnetwork out of a network that holds many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import AfterValidator
from torch import nn

from dlas.networks.scoring import batches, score
from dlas.networks.subnets import written
from dlas.networks.subnets.flexible import Flexible
from dlas.networks.subnets.modules import subnet
from dlas.networks.subnets.shapes import small
from dlas.networks.subnets.written import Space, codes, parse
from dlas.networks.torch_network import TorchNetwork
from dlas.networks.weights import WEIGHTS_FILE, load_weights, read_weights
from dlas.stack import Compression, Data, Facts, InputError, Model, Network, Unsupported, Workspace


def _known_subnet(text: str) -> str:
    codes([text])  # which says what is wrong
    return text


@dataclass(frozen=True)
class Subnet(Compression):
    """One subnetwork of the model ``supernet``: the first channels, the middle of kernels, fewer layers.

    The statistics of its batch norms are estimated on the training images; nothing is trained.

    Parameters
    ----------
    subnet : str
        As for the model ``ofa_mobilenet_v3``; or ``"drawn"``.
    space : {"ofa", "compofa_fixed", "compofa_elastic"}
        Where subnetworks are drawn.
    """

    subnet: Annotated[str, AfterValidator(_known_subnet)]
    space: Space = "ofa"

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a subnetwork at random, of all."""
        return {"subnet": written.draw("ofa", rng)}

    @classmethod
    def drawn_with(cls, given: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a subnetwork of a space at random; the space is no part of what it is."""
        return {"subnet": written.draw(given.get("space", "ofa"), rng), "space": "ofa"}

    @classmethod
    def mutated(
        cls, drawn: Mapping[str, Any], given: Mapping[str, Any], rate: float, rng: np.random.Generator
    ) -> Mapping[str, Any]:
        """Return a subnetwork with each depth, kernel size and expansion ratio drawn anew at a rate."""
        return {"subnet": written.mutated(drawn["subnet"], given.get("space", "ofa"), rate, rng)}

    @classmethod
    def crossed(
        cls,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        given: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> Mapping[str, Any]:
        """Return a subnetwork each layer of which is that of one of two others."""
        return {"subnet": written.crossed(one["subnet"], other["subnet"], given.get("space", "ofa"), rng)}

    def verify(self) -> None:
        """Refuse a space beside a subnetwork that is not drawn.

        Raises
        ------
        InputError
        """
        if self.space != "ofa":
            raise InputError(
                f"space = {self.space!r} says where subnet = 'drawn' is drawn from; leave it out"
            )

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the subnetwork, evaluated in full where images have labels.

        Raises
        ------
        Unsupported
            If the network holds no subnetworks.
        """
        if not isinstance(network, TorchNetwork) or not isinstance(network.module, Flexible):
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
