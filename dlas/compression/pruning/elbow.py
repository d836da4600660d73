"""Where on a curve of accuracy against compression to stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def last_within(accuracies: Sequence[float], tolerance: float) -> int:
    """Return the last place where the accuracy is at most ``tolerance`` below that of the first.

    Parameters
    ----------
    accuracies : sequence of float
        Fractions; the uncompressed network's first, then by rising compression.
    tolerance : float
        A fraction.

    References
    ----------
    DLAS, section 4.2: the highest compression before a significant drop.
    """
    lost = accuracies[0] - np.asarray(accuracies)
    return int(np.flatnonzero(lost <= tolerance + 1e-12)[-1])


def knee(levels: Sequence[float], accuracies: Sequence[float]) -> int:
    """Return the place farthest above the straight line from the first to the last.

    It serves curves without a plateau.  One that falls but nowhere lies above
    that line has no knee, and the first place is returned; one that ends no
    lower than it starts never breaks, and the last place is returned.

    Parameters
    ----------
    levels : sequence of float
        Rising.
    accuracies : sequence of float

    References
    ----------
    V. Satopaa et al., "Finding a 'Kneedle' in a Haystack", ICDCS Workshops 2011, section III.
    """
    x, y = np.asarray(levels, dtype=float), np.asarray(accuracies, dtype=float)
    if y[-1] >= y[0]:
        return len(y) - 1
    line = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    return int(np.argmax(np.round(y - line, 9)))  # rounding lifts points of the line off it
