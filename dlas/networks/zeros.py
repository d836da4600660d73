"""A hook that keeps pruned weights at zero during training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from dlas.networks.torch.network import conv_weights


def keep_zeros(module: nn.Module) -> Callable[[nn.Module], None]:
    """Return a hook that resets the convolution weights that are zero now after each training step.

    Weights that an earlier technique of a chain pruned stay pruned, too.
    """
    zeros = {name: pruned for name, weight in conv_weights(module).items() if (pruned := weight == 0).any()}

    @torch.no_grad()
    def reset(trained: nn.Module) -> None:
        weights = conv_weights(trained)
        for name in zeros:
            zeros[name] = zeros[name].to(weights[name].device)
            weights[name].masked_fill_(zeros[name], 0)

    return reset
