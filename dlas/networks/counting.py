"""Multiply-adds of torch networks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


def count_macs(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return the multiply-adds of convolutions and linear layers for one image [c, h, w].

    They are counted where torch dispatches them, so that linear layers which are
    called as functions (attention's projections) count too.  Products of two
    activations, batch norm, pooling and additions do not.
    """
    counter = FlopCounterMode(display=False)
    with plain_attention(), counter:
        _run_once(module, shape)
    counted = counter.get_flop_counts().get("Global", {})
    aten = torch.ops.aten
    return int(sum(counted.get(op, 0) for op in (aten.convolution, aten.mm, aten.addmm)) // 2)


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Compute attention step by step: the fused form hides its linear layers from counting and exporting."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def count_skippable_macs(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return how many multiply-adds for one image [c, h, w] have a weight of zero.

    Layers that are called as functions are not looked at.
    """
    found = 0

    def note(layer: Any, inputs: Any, output: torch.Tensor) -> None:
        nonlocal found
        # Every output value of a filter meets each of the filter's weights once.
        filters = output.shape[1] if isinstance(layer, nn.Conv2d) else output.shape[-1]
        zeros = layer.weight.numel() - int(layer.weight.count_nonzero())
        found += output.numel() // filters * zeros

    layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        _run_once(module, shape)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _run_once(module: nn.Module, shape: tuple[int, int, int]) -> None:
    """Run the module on one image of zeros [c, h, w] in evaluation mode; its own mode is left as it was."""
    first = next(module.parameters(), torch.zeros(0))
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            module(torch.zeros(1, *shape, device=first.device, dtype=first.dtype))
    finally:
        module.train(training)
