"""Compression by smaller numbers: the network becomes an ONNX graph that holds them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import onnx

from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx_files import read_model
from dlas.networks.onnx_network import ONNX_FILE, OnnxNetwork, number_type
from dlas.networks.scoring import score
from dlas.stack import Compression, Data, Facts, Model, Network, Workspace


@dataclass(frozen=True)
class SmallerNumbers(Compression):
    """Holds the network in numbers of fewer bits.

    A torch module is exported first, and counted as the graph that it becomes:
    batch norms are folded into the convolutions before them, and equal tensors,
    such as the biases of an untrained network, are stored once.
    """

    BITS: ClassVar[int]
    TOLERANCE: ClassVar[float]
    """Largest relative deviation that is accepted of a build of the network."""

    @abstractmethod
    def convert(self, model: onnx.ModelProto, data: Data, workspace: Workspace) -> onnx.ModelProto:
        """Return a float32 graph in the technique's numbers; ``model`` may be changed."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the network as a graph in smaller numbers, scored where images have labels.

        Raises
        ------
        Unsupported
            If the network has no form in ONNX, or is in smaller numbers already.
        """
        model = as_onnx(network, batch=None)
        kind = number_type(model)
        if kind != "float32":
            raise Unsupported(f"the network is in {kind} already; {self.BITS} bits need float32")
        reached = {**network.facts.reached, "bits": self.BITS}
        facts = replace(network.facts, accuracy=None, validation_accuracy=None, reached=reached)
        converted = OnnxNetwork(self.convert(model, data, workspace), facts, self.TOLERANCE)
        converted.count()
        if data.labelled and facts.trained:
            workspace.say("evaluating")
            score(converted, data)
        return converted

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the graph that was saved in ``folder``."""
        return OnnxNetwork(read_model(folder / ONNX_FILE), facts, self.TOLERANCE)
