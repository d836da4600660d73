"""Arrays of a fitted predictor in a safetensors file, which may come from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from dlas.errors import InputError

FILE = "arrays.safetensors"
MOST_BYTES = 1 << 30
"""Largest file that is read: 300 trees fitted to 100,000 rows have about this size."""
Arrays = Mapping[str, npt.NDArray[Any]]


def write_arrays(folder: Path, arrays: Arrays, file: str = FILE) -> None:
    """Write arrays by name into a file in ``folder``."""
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / file)


def read_arrays(folder: Path, shapes: Mapping[str, int], file: str = FILE) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays that :func:`write_arrays` wrote.

    Parameters
    ----------
    shapes : mapping of str to int
        The arrays that there must be, and their numbers of dimensions.

    Raises
    ------
    InputError
        If the file is missing, damaged or too large, or lacks an array of finite numbers.
    """
    path = folder / file
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        arrays = load_file(path)
    except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} holds no arrays of a predictor: {error}") from None
    for name, dimensions in shapes.items():
        if name not in arrays or arrays[name].ndim != dimensions:
            raise InputError(f"{path} has no array {name!r} of {dimensions} dimensions")
        if not (np.issubdtype(arrays[name].dtype, np.number) and not np.isnan(arrays[name]).any()):
            raise InputError(f"{path}: the array {name!r} holds something else than numbers")
    return {name: arrays[name] for name in shapes}
