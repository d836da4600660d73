"""Multiply-adds of torch networks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dlas.networks.forward import hooked, run_on_zeros


def count_macs(module: nn.Module, shape: tuple[int, int, int]) -> int:
    """Return the multiply-adds of convolutions and linear layers for one image [c, h, w].

    They are counted where torch dispatches them, so that linear layers called as
    functions (attention's projections) count too.  Products of two activations,
    batch norm, pooling and additions do not count.
    """
    counter = FlopCounterMode(display=False)
    with plain_attention(), counter:
        run_on_zeros(module, shape)
    flops = counter.get_flop_counts().get("Global", {})
    aten = torch.ops.aten
    return int(sum(flops.get(op, 0) for op in (aten.convolution, aten.mm, aten.addmm)) // 2)


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
    """Return the number of multiply-adds for one image [c, h, w] whose weight is zero.

    Layers called as functions are not included.
    """
    skippable = 0

    def add(name: str, layer: nn.Module, read: torch.Tensor, written: torch.Tensor) -> None:
        nonlocal skippable
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        # Each output value of a filter uses each of the filter's weights once.
        filters = written.shape[1] if isinstance(layer, nn.Conv2d) else written.shape[-1]
        zeros = layer.weight.numel() - int(layer.weight.count_nonzero())
        skippable += written.numel() // filters * zeros

    with hooked(module, (nn.Conv2d, nn.Linear), add):
        run_on_zeros(module, shape)
    return skippable
