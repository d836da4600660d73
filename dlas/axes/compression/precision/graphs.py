"""Compression to fewer bits: the network becomes an ONNX graph of another number type."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import onnx

from dlas.errors import Unsupported
from dlas.networks.exporting import as_onnx
from dlas.networks.onnx.files import read_model
from dlas.networks.onnx.network import ONNX_FILE, OnnxNetwork, number_type
from dlas.networks.scoring import score
from dlas.stack import Compression, Data, Facts, Model, Network, Workspace


@dataclass(frozen=True)
class SmallerNumbers(Compression):
    """Converts the network to a number type of fewer bits.

    A torch module is exported first, and counted as an ONNX graph:
    batch norms are folded into the convolutions before them, and equal tensors,
    such as the biases of an untrained network, are stored once.
    """

    BITS: ClassVar[int]
    TOLERANCE: ClassVar[float]
    """Largest accepted relative deviation of a build of the network."""

    @abstractmethod
    def convert(self, model: onnx.ModelProto, data: Data, workspace: Workspace) -> onnx.ModelProto:
        """Return the float32 graph ``model``, which may be changed, in the technique's number type."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the converted network, scored if images have labels.

        Raises
        ------
        Unsupported
            If the network cannot be exported to ONNX, or has fewer bits already.
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
