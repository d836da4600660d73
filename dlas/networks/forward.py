"""Forward passes of torch modules: on images, on zeros, and with hooks on layers of some kinds."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

import torch
from torch import nn

from dlas.stack import Images, Outputs

EVALUATION_BATCH = 128
"""Images in a batch of evaluation."""


class LayerHook(Protocol):
    """Called after each forward pass of a layer; see :func:`hooked`."""

    def __call__(self, name: str, layer: nn.Module, read: torch.Tensor, written: torch.Tensor) -> None:
        """Receive the layer's name, the layer, its first input and its output."""
        ...


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode without gradients, and restore its mode on exit."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)


def run_module(module: nn.Module, images: Images, batch: int = EVALUATION_BATCH) -> Outputs:
    """Return the module's outputs [n, classes] in evaluation mode, ``batch`` images at a time."""
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    with evaluating(module):
        batches = torch.from_numpy(images).split(batch)
        return torch.cat([module(images.to(device)).float().cpu() for images in batches]).numpy()


def run_on_zeros(module: nn.Module, shape: tuple[int, int, int], batch: int = 1) -> None:
    """Run the module once on zeros [batch, c, h, w], in evaluation mode and its own number type."""
    images = zeros(module, shape, batch)
    with evaluating(module):
        module(images)


def zeros(module: nn.Module, shape: tuple[int, int, int], batch: int) -> torch.Tensor:
    """Return zeros [batch, c, h, w] in the module's number type, on its device."""
    first = next(module.parameters(), torch.zeros(0))
    return torch.zeros(batch, *shape, device=first.device, dtype=first.dtype)


@contextlib.contextmanager
def hooked(module: nn.Module, kinds: tuple[type[nn.Module], ...], hook: LayerHook) -> Iterator[None]:
    """Call ``hook`` after each forward pass of a layer of these kinds, while the context lasts."""

    def forward_hook(name: str) -> ForwardHook:
        return lambda layer, inputs, output: hook(name, layer, inputs[0], output)

    layers = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, kinds)]
    handles = [layer.register_forward_hook(forward_hook(name)) for name, layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class ForwardHook(Protocol):
    """A forward hook of torch."""

    def __call__(self, layer: nn.Module, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        """Receive the layer, its positional arguments and its output."""
        ...
