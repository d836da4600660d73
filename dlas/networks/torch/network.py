"""Networks as torch modules: reference outputs, accuracy, counts, storage."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from dlas.networks.counting import count_macs, count_skippable_macs
from dlas.networks.forward import evaluating, run_module, zeros
from dlas.networks.operators import Operators, by_batch
from dlas.networks.origins import SeededConstruction, save_state
from dlas.networks.torch.recording import record
from dlas.stack import Facts, Images, Network, NetworkOperator, Outputs, csr_bytes


def conv_weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return the weight [k, c / groups, r, s] of every 2-D convolution, by the layer's name."""
    return {name: layer.weight for name, layer in module.named_modules() if isinstance(layer, nn.Conv2d)}


class TorchNetwork(Network):
    """A network held as a torch module.

    Parameters
    ----------
    module : torch.nn.Module
        Maps images [n, c, h, w] to outputs [n, classes].
    facts : Facts
    tolerance : float
        Largest accepted relative deviation of a build from :meth:`reference`.

    Attributes
    ----------
    origin : SeededConstruction or None
        Where the weights come from, if they follow from a seed.
    """

    def __init__(self, module: nn.Module, facts: Facts, tolerance: float = 1e-4) -> None:
        self.module = module.eval()
        self.facts = facts
        self.tolerance = tolerance
        self.origin: SeededConstruction | None = None

    def reference(self, images: Images) -> Outputs:
        """Return the module's own outputs [n, classes], in evaluation mode."""
        return run_module(self.module, images)

    def count(self) -> None:
        """Write parameters, nonzeros, multiply-adds and bytes into :attr:`facts`.

        Bytes are those of parameters and buffers as they are stored, and with
        the weights of convolutions in compressed sparse rows instead.
        """
        parameters = list(self.module.parameters())
        self.facts.parameters = sum(parameter.numel() for parameter in parameters)
        self.facts.nonzeros = sum(int(parameter.count_nonzero()) for parameter in parameters)
        self.facts.macs = count_macs(self.module, self.facts.shape)
        self.facts.effective_macs = self.facts.macs - count_skippable_macs(self.module, self.facts.shape)
        stored = self.module.state_dict().values()
        self.facts.model_bytes = sum(tensor.numel() * tensor.element_size() for tensor in stored)
        self.facts.csr_bytes = self.facts.model_bytes + sum(
            csr_bytes(len(weight), int(weight.count_nonzero()), weight.element_size())
            - weight.numel() * weight.element_size()
            for weight in conv_weights(self.module).values()
        )

    def operators(self) -> Operators:
        """Return the operators that torch dispatches in an inference of one image, and of two."""
        return by_batch(self._operators_at)

    def _operators_at(self, batch: int) -> list[NetworkOperator]:
        images = zeros(self.module, self.facts.shape, batch)
        with evaluating(self.module), torch.inference_mode():
            recording = record(self.module, lambda: self.module(images))
        return recording.operators() if recording else []

    def save(self, folder: Path) -> None:
        """Write the weights, without those that the origin gives."""
        save_state(self.module, self.origin, folder)
