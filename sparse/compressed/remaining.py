"""Which channels and filters of a pruned weight are left, and the smaller convolution that they form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dlas.stack import Array, Conv
from dlas.stack.array import Int32Array

BLOCKS = (16, 8, 4)
"""Filters are padded to a multiple of the largest that they fill by more than half."""


def remaining(weight: Array, conv: Conv) -> tuple[Int32Array, Int32Array]:
    """Return the remaining channels and filters of each group that has nonzeros.

    Parameters
    ----------
    weight : ndarray, [k, c / groups, r, s]

    Returns
    -------
    channels : ndarray of int32, [groups, c]
        Shorter groups are padded with a channel that they do not read.
    filters : ndarray of int32, [groups, k]
        A group's last block is padded with ``conv.k``.
    """
    by_group = weight.reshape(conv.groups, -1, *weight.shape[1:])
    read: Array = np.any(by_group, axis=(1, 3, 4))
    used: Array = np.any(by_group, axis=(2, 3, 4))
    groups = np.flatnonzero(used.any(axis=1)) if used.any() else np.array([0])
    channels = _as_array([np.flatnonzero(read[g]) for g in groups], [int(np.argmin(read[g])) for g in groups])
    own = [np.flatnonzero(used[g]) + g * used.shape[1] for g in groups]
    most = max(map(len, own))
    block = next((block for block in BLOCKS if block // 2 < most and block <= used.shape[1]), 1)
    filters = _as_array(own, [conv.k] * len(groups), block)
    return (channels + groups[:, None] * read.shape[1]).astype(np.int32), filters.astype(np.int32)


def _as_array(rows: Sequence[Array], fill: Sequence[int], block: int = 1) -> Array:
    """Return rows as one array in whole blocks, at least one, the shorter rows padded with their ``fill``."""
    length = max(1, *map(len, rows)) if rows else 1
    length = -(-length // block) * block
    filled = zip(rows, fill, strict=True)
    return np.stack([np.pad(row, (0, length - len(row)), constant_values=value) for row, value in filled])


def compact_conv(conv: Conv, channels: tuple[int, ...], filters: tuple[int, ...]) -> Conv:
    """Return the remaining convolution, from the shapes of both index arrays."""
    groups = channels[0]
    return replace(conv, c=groups * channels[1], k=groups * filters[1], groups=groups)
