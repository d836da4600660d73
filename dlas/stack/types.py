"""Types that many functions take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""A numpy array of numbers: times, features, predictions."""
Say = Callable[[str], None]
"""Takes a line of progress."""
