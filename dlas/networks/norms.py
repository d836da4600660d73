"""What batch norm needs in training: more than one value a channel."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


def too_few_values(module: nn.Module, shape: Sequence[int]) -> str | None:
    """Return why a module cannot be trained on images [n, c, h, w] of this shape, or None.

    Batch norm normalises by the variance over the images and places of a channel, and
    torch refuses to train where that is a single value: one image, reduced to one place.

    Parameters
    ----------
    module : torch.nn.Module
        Is left as it is.
    shape : sequence of int
        Of all images: n, c, h, w.
    """
    if shape[0] > 1 or not any(
        isinstance(each, nn.modules.batchnorm._BatchNorm) for each in module.modules()
    ):
        return None
    try:
        _train_without_memory(module, shape)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            return None
        size = "x".join(map(str, shape[1:]))
        return (
            f"it cannot be trained with batch {shape[0]} on images {size}: a batch norm gets a single "
            "value a channel there, which has no variance; train with batch 2 or more, or on larger images"
        )
    except Exception:  # a module may be unable to run without memory: then a step tells
        return None
    return None


def _train_without_memory(module: nn.Module, shape: Sequence[int]) -> None:
    """Run a module in training mode on tensors without memory: nothing is computed or changed."""
    named = (*module.named_parameters(), *module.named_buffers())
    stand_ins = {name: torch.empty_like(tensor, device="meta") for name, tensor in named}
    modes = {each: each.training for each in module.modules()}
    try:
        module.train()
        torch.func.functional_call(module, stand_ins, (torch.empty(*shape, device="meta"),))
    finally:
        for each, training in modes.items():
            each.training = training
