"""Training steps of a torch module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from dlas.axes.compilers.programs.torch_layers import time_layers
from dlas.errors import Unsupported
from dlas.networks.norms import too_few_values
from dlas.networks.zeros import keep_zeros
from dlas.stack import Layer, TrainingStep

LEARNING_RATE = 1e-3
"""Small, so that thousands of steps on the same images neither diverge nor end in zeros."""
MOMENTUM = 0.9


class TorchTrainingStep(TrainingStep):
    """Trains a module on a batch by SGD with momentum; dropout draws from torch's own generator.

    Parameters
    ----------
    module : nn.Module
        Is changed.
    run : callable
        The module, or its compiled form.
    images : tensor, [n, c, h, w]
    labels : tensor of int64, [n]
        On the device of the images.
    masked : bool
        Whether weights of convolutions that are zero now stay zero.

    Raises
    ------
    Unsupported
        If the module cannot be trained on these images.
    """

    def __init__(
        self,
        module: nn.Module,
        run: Callable[[torch.Tensor], Any],
        images: torch.Tensor,
        labels: torch.Tensor,
        masked: bool = False,
    ) -> None:
        self._module, self._run = module.train(), run
        self._images, self._labels = images, labels
        self._parameters = {name: each for name, each in module.named_parameters() if each.requires_grad}
        if not self._parameters:
            raise Unsupported("the network has no weights to train")
        if reason := too_few_values(module, images.shape):
            raise Unsupported(reason)
        self._optimizer = torch.optim.SGD(self._parameters.values(), LEARNING_RATE, MOMENTUM)
        if masked:
            reset = keep_zeros(module)
            self._optimizer.register_step_post_hook(lambda *_: reset(module))

    def step(self) -> float:
        """Train once, and return the loss when the weights are updated."""
        self._optimizer.zero_grad()
        loss = functional.cross_entropy(self._outputs(), self._labels)
        loss.backward()
        self._optimizer.step()
        if self._images.device.type == "cuda":
            torch.cuda.synchronize(self._images.device)
        return loss.item()

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return a copy of all trained weights, by name."""
        return {name: each.detach().cpu().numpy().copy() for name, each in self._parameters.items()}

    def layers(self, repeats: int) -> list[Layer] | None:
        """Return the operators of a step, forward and backward; None for a compiled module."""
        if self._run is not self._module:
            return None
        return time_layers(self._module, self.step, repeats, self._images.device)

    def _outputs(self) -> torch.Tensor:
        """Return the outputs [n, classes]; of several, as auxiliary classifiers add them, the first."""
        outputs = self._run(self._images)
        if isinstance(outputs, torch.Tensor):
            return outputs
        if isinstance(outputs, Sequence) and outputs and isinstance(outputs[0], torch.Tensor):
            self.note = f"the loss is that of the first of {len(outputs)} outputs in training"
            return outputs[0]
        raise Unsupported(f"in training the network returns a {type(outputs).__name__}, and no outputs")
