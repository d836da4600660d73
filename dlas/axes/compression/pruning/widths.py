"""Narrow the layers of a dense module to the widths of a pruned network."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

Norm = nn.modules.batchnorm._BatchNorm


def narrow(module: nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Make layers as narrow as the tensors of ``state``, in place; their values are not set.

    Tensors that cannot come from removing channels (another name, rank or kernel, more
    channels) are left unchanged; loading ``state`` will refuse them.

    Parameters
    ----------
    module : torch.nn.Module
        The dense network.
    state : mapping
        A state dict of the same network, with fewer channels.
    """
    for prefix, layer in module.named_modules():
        if not isinstance(layer, nn.Conv2d | nn.Linear | Norm):
            continue
        for name, tensor in _own(layer).items():
            saved = state.get(f"{prefix}.{name}" if prefix else name)
            if saved is not None and _is_part(saved, tensor):
                empty = torch.empty_like(tensor, memory_format=torch.contiguous_format).resize_(saved.shape)
                setattr(layer, name, nn.Parameter(empty) if isinstance(tensor, nn.Parameter) else empty)
        _set_widths(layer)


def _own(layer: nn.Module) -> dict[str, torch.Tensor]:
    """Return the layer's own parameters and buffers by name."""
    return {**dict(layer.named_parameters(recurse=False)), **dict(layer.named_buffers(recurse=False))}


def _is_part(saved: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Return whether removing some of a tensor's rows and columns, not all, gives the saved shape."""
    if saved.shape == tensor.shape or saved.dim() != tensor.dim():
        return False
    fewer = all(0 < new <= old for new, old in zip(saved.shape[:2], tensor.shape[:2], strict=True))
    return fewer and saved.shape[2:] == tensor.shape[2:]


def _set_widths(layer: nn.Module) -> None:
    """Set a layer's attributes to the shapes of its tensors."""
    if isinstance(layer, nn.Conv2d):
        if layer.groups == layer.out_channels:  # depthwise, or one filter, which stays
            layer.groups = len(layer.weight)
        layer.out_channels = len(layer.weight)
        layer.in_channels = layer.weight.shape[1] * layer.groups
    elif isinstance(layer, nn.Linear):
        layer.out_features, layer.in_features = layer.weight.shape
    elif isinstance(layer, Norm):
        tensors = [tensor for tensor in (layer.weight, layer.running_mean) if tensor is not None]
        layer.num_features = len(tensors[0]) if tensors else layer.num_features
