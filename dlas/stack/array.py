"""Arrays of numbers, by the type of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
"""A numpy array of any element type: weights, packed formats, outputs."""
Float64Array = npt.NDArray[np.float64]
"""Measurements, and what is computed from them."""
Int32Array = npt.NDArray[np.int32]
"""Indices in packed formats."""
Int64Array = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]
"""Indices of other arrays' elements."""
BoolArray = npt.NDArray[np.bool_]
"""Masks."""
