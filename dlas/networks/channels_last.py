"""Training with channels stored last, which a fault of oneDNN forbids some networks."""

from __future__ import annotations

from torch import nn


def channels_last_is_safe(module: nn.Module) -> bool:
    """Return whether the module has no layer that oneDNN gets wrong with channels last.

    The weight gradient of a strided 1x1 convolution of fewer channels than a
    vector has overwrites memory: https://github.com/uxlfoundation/oneDNN/issues/6035.
    """
    return not any(
        isinstance(layer, nn.Conv2d)
        and layer.kernel_size == (1, 1)
        and max(layer.stride) > 1
        and layer.in_channels // layer.groups < 16
        for layer in module.modules()
    )
