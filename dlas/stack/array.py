"""Arrays of numbers of any type."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
"""A numpy array of any element type: weights, packed formats, outputs."""
