"""Random changes of small training images, drawn with torch's default generator."""

from __future__ import annotations

import torch
from torch.nn import functional


def random_windows(images: torch.Tensor, black: torch.Tensor, padding: int) -> torch.Tensor:
    """Cut a random window of the same size out of each padded image.

    Parameters
    ----------
    images : Tensor, [n, c, h, w]
        Normalised; the padding is black, as if added before normalising.
    black : Tensor, [c, 1, 1] or []
        What normalising makes of zero.
    padding : int
        Pixels on each side.

    Returns
    -------
    Tensor, [n, c, h, w]
    """
    n, _, h, w = images.shape
    padded = functional.pad(images - black, [padding] * 4) + black
    windows = padded.unfold(2, h, 1).unfold(3, w, 1)  # a view: [n, c, 9, 9, h, w] with a padding of 4
    top, left = torch.randint(0, 2 * padding + 1, (2, n))
    return windows[torch.arange(n), :, top, left]


def mirrored_at_random(images: torch.Tensor) -> torch.Tensor:
    """Mirror half of the images [n, c, h, w], left to right."""
    mirrored = torch.rand(len(images)) < 0.5
    return torch.where(mirrored[:, None, None, None], images.flip(3), images)
