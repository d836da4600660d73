"""Files of images and labels in the format of MNIST, idx: a header of sizes, then bytes; gzipped or plain."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError
from dlas.stack import Labels

GZIP = b"\x1f\x8b"
BYTES = 8
"""The code of unsigned bytes in an idx header."""
MOST_ITEMS = 100_000
LARGEST_FILE = 128 * 2**20
"""Limit for a file as it lies on the disk, bytes; 60,000 images have 47 MB, or 26 MB gzipped."""


def read_images(path: Path, side: int) -> npt.NDArray[np.uint8]:
    """Return a file's images, [n, side, side].

    Raises
    ------
    InputError
        If the file holds anything else; the message names it.
    """
    return _read(path, (side, side))


def read_labels(path: Path, classes: int) -> Labels:
    """Return a file's class indices, [n].

    Raises
    ------
    InputError
        If the file holds anything else; the message names it.
    """
    labels = _read(path, ()).astype(np.int64)
    if labels.max() >= classes:
        raise InputError(
            f"{path} is no idx file of labels: it has the label {labels.max()}, "
            f"and classes are 0 to {classes - 1}"
        )
    return labels


def _read(path: Path, item: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return the bytes of a file whose items have the shape ``item``."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE // 2**20} MiB")
        with path.open("rb") as raw:
            zipped = raw.read(len(GZIP)) == GZIP
            raw.seek(0)
            if not zipped:
                return _content(raw, item)
            with gzip.open(raw) as unpacked:
                return _content(unpacked, item)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is no idx file of {'images' if item else 'labels'}: {error}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _content(file: BinaryIO | gzip.GzipFile, item: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return what an idx file holds, as [n, *item]; no more is read than its header tells."""
    shape = (_items(file, item), *item)
    size = math.prod(shape)
    content = file.read(size + 1)
    if len(content) < size:
        raise ValueError(f"it ends after {len(content):,} of the {size:,} bytes that its header tells")
    if len(content) > size:
        raise ValueError(f"it goes on after the {size:,} bytes that its header tells")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _items(file: BinaryIO | gzip.GzipFile, item: Sequence[int]) -> int:
    """Return the number of items that a header tells, and check the rest of it."""
    dimensions = 1 + len(item)
    magic = file.read(4)
    expected = bytes((0, 0, BYTES, dimensions))
    if magic != expected:
        raise ValueError(f"it begins with {magic.hex(' ') or 'nothing'}, not {expected.hex(' ')}")
    raw = file.read(4 * dimensions)
    if len(raw) < 4 * dimensions:
        raise ValueError("it ends within its header")
    count, *found = np.frombuffer(raw, ">u4").tolist()
    if list(item) != found:
        raise ValueError(
            f"its images have {' x '.join(map(str, found))} pixels, not {' x '.join(map(str, item))}"
        )
    if not 1 <= count <= MOST_ITEMS:
        raise ValueError(f"its header tells {count:,} items, not 1 to {MOST_ITEMS:,}")
    return int(count)


def idx_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name in a folder, plain or with the suffix ``.gz``, or None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)
