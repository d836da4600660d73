"""Whether an output is right: a candidate's of a search, compared with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.stack import BFLOAT16_BITS, from_bfloat16

Array = npt.NDArray[Any]


def difference(output: Array, expected: Array, most: float) -> str | None:
    """Return how an output differs from the reference, None if it does not.

    Parameters
    ----------
    most : float
        Largest accepted ``max|output - expected| / max|expected|``; integers may differ
        by one, since halves may be rounded either way.  ``uint16`` may hold bfloat16.
    """
    if not np.issubdtype(expected.dtype, np.floating):
        gap = int(np.abs(output.astype(np.int64) - expected.astype(np.int64)).max())
        if gap <= 1:
            return None
        if expected.dtype != BFLOAT16_BITS:
            return f"off by {gap}"
        output, expected = from_bfloat16(output), from_bfloat16(expected)
    defined = ~np.isnan(expected)
    if (np.isnan(output) == defined).any():
        return "numbers that are none, or elements that were never written"
    gap = np.abs(output - expected, where=defined, out=np.zeros_like(expected)).max(initial=0)
    largest = np.abs(expected[defined]).max(initial=0) or 1.0
    relative = float(gap) / float(largest)
    return None if relative <= most else f"off by {relative:.2g} of the largest output"
