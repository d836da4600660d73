"""The elbow of a curve of accuracy against compression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def last_within(accuracies: Sequence[float], tolerance: float) -> int:
    """Return the last index where the accuracy is at most ``tolerance`` below the first.

    Parameters
    ----------
    accuracies : sequence of float
        Fractions, by rising compression; the uncompressed network is first.
    tolerance : float
        A fraction.

    References
    ----------
    DLAS, section 4.2: the highest compression before a significant drop.
    """
    drops = accuracies[0] - np.asarray(accuracies)
    return int(np.flatnonzero(drops <= tolerance + 1e-12)[-1])


def knee(levels: Sequence[float], accuracies: Sequence[float]) -> int:
    """Return the index of the point farthest above the line from the first to the last point.

    This suits curves without a plateau.  For a falling curve that is nowhere above
    the line it is the first index; for a curve that ends no lower than it starts,
    the last.

    Parameters
    ----------
    levels : sequence of float
        Rising.

    References
    ----------
    V. Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011, section III.
    """
    x, y = np.asarray(levels, dtype=float), np.asarray(accuracies, dtype=float)
    if y[-1] >= y[0]:
        return len(y) - 1
    line = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    return int(np.argmax(np.round(y - line, 9)))  # rounding errors would lift points off the line
