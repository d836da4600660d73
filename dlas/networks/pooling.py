"""Adaptive pooling written out in slices, for exporters that lack its uneven windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

AVERAGES: dict[Any, int] = {
    functional.adaptive_avg_pool1d: 1,
    functional.adaptive_avg_pool2d: 2,
    functional.adaptive_avg_pool3d: 3,
    torch.ops.aten.adaptive_avg_pool1d.default: 1,
    torch.ops.aten.adaptive_avg_pool2d.default: 2,
    torch.ops.aten.adaptive_avg_pool3d.default: 3,
}
"""Functions of adaptive average pooling, and the number of dimensions that they pool."""


class WrittenPooling(TorchFunctionMode):
    """Replaces adaptive average pooling whose output does not divide its input while it is entered.

    Each output averages a window from ``floor(i * size / outputs)`` to ``ceil((i + 1) * size / outputs)``.
    The mean over a window is the mean over its rows of their means.
    """

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, or what replaces it."""
        if function in AVERAGES:
            images, outputs = _arguments(*args, **(kwargs or {}))
            rank = AVERAGES[function]
            sizes = [int(size) for size in images.shape[-rank:]]
            listed = outputs if isinstance(outputs, list | tuple) else repeat(outputs, rank)
            wanted = [
                size if given is None else int(given) for size, given in zip(sizes, listed, strict=False)
            ]
            if any(size % count for size, count in zip(sizes, wanted, strict=True)):
                return _averaged(images, sizes, wanted)
        return function(*args, **(kwargs or {}))


def _arguments(input: torch.Tensor, output_size: Any) -> tuple[torch.Tensor, Any]:
    return (input, output_size)


def _averaged(images: torch.Tensor, sizes: Sequence[int], outputs: Sequence[int]) -> torch.Tensor:
    """Return the means over windows of the last dimensions, one dimension after the other."""
    for dimension, (size, count) in enumerate(zip(sizes, outputs, strict=True), start=-len(sizes)):
        windows = ((index * size // count, -(-(index + 1) * size // count)) for index in range(count))
        means = [
            images.narrow(dimension, start, end - start).mean(dimension, keepdim=True)
            for start, end in windows
        ]
        images = torch.cat(means, dimension)
    return images
