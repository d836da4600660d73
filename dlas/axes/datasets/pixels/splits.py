"""How training files are split into images to train on and images to validate with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SEED = 0
"""Part of each data set's definition: every study holds out the same images."""
HELD_OUT = 10
"""One in so many images is held out."""


def hold_out(count: int, most: int | None = None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the places of images to train on, in an order drawn once, and of those held out, ascending.

    Parameters
    ----------
    most : int, optional
        Hold out no more than so many.
    """
    order = np.random.default_rng(SEED).permutation(count)
    number = max(1, min(count // HELD_OUT, most or count))
    return order[number:], np.sort(order[:number])
