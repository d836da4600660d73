"""Trees of several boosters, which numpy walks together.

A call of XGBoost has its price, whatever the number of rows: for the few kernels of one network, a call for
each of their kinds takes longer than all walks together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float32]
Tree = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]
"""Left and right children, features and thresholds or, of leaves, values; a leaf's children are -1."""
VISITS = 30_000
"""Nodes that numpy visits in the time of a call of XGBoost."""
LARGEST = float(np.finfo(np.float32).max)
"""Features must be smaller: as XGBoost does, they are compared in single precision."""


@dataclass(frozen=True)
class Nodes:
    """The trees of one booster as arrays."""

    left: Places
    """The left child, behind which the right one is; of a leaf the leaf itself; [nodes]."""
    feature: Places
    """[nodes]."""
    threshold: Floats
    """A row whose feature is smaller goes left; infinite for a leaf; [nodes]."""
    value: Floats
    """Of leaves; [nodes]."""
    roots: Places
    """[trees]."""
    base: float
    """What the values of leaves are added to."""

    @classmethod
    def of(cls, trees: Sequence[Tree], base: float) -> Nodes | None:
        """Return the nodes of trees; None where a right child is not behind its left one."""
        counts = [len(left) for left, _, _, _ in trees]
        starts = np.cumsum([0, *counts[:-1]], dtype=np.intp)
        left, right, feature, value = (np.concatenate(arrays) for arrays in zip(*trees, strict=True))
        leaf = left < 0
        if not np.array_equal(right[~leaf], left[~leaf] + 1):
            return None
        own = np.arange(len(left), dtype=np.intp)
        single = value.astype(np.float32)
        return cls(
            left=np.where(leaf, own, left + np.repeat(starts, counts)).astype(np.intp),
            feature=feature.astype(np.intp),
            threshold=np.where(leaf, np.float32(np.inf), single),
            value=np.where(leaf, single, np.float32(0)),
            roots=starts,
            base=base,
        )


@dataclass(frozen=True)
class Walks:
    """The trees of several boosters."""

    left: Places
    """As of :class:`Nodes`, those of one booster behind those of another, and a last leaf of value 0."""
    feature: Places
    """As of :class:`Nodes`, those of one booster behind those of another, and a last leaf of value 0."""
    threshold: Floats
    """As of :class:`Nodes`, those of one booster behind those of another, and a last leaf of value 0."""
    value: Floats
    """As of :class:`Nodes`, those of one booster behind those of another, and a last leaf of value 0."""
    roots: Places
    """Of each booster a column, which ends in that last leaf where others have more trees; the last column is
    of no booster; [trees, boosters + 1].
    """
    base: Floats
    """[boosters + 1]."""
    depth: int
    """Steps from a root to the leaf that is farthest from it."""

    @classmethod
    def of(cls, boosters: Sequence[Nodes]) -> Walks:
        """Return the trees of boosters, at least one."""
        starts = np.cumsum([0, *(len(each.left) for each in boosters)], dtype=np.intp)
        last = starts[-1]
        left = np.concatenate([*(each.left + at for each, at in zip(boosters, starts, strict=False)), [last]])
        roots = np.full((max(len(each.roots) for each in boosters), len(boosters) + 1), last, dtype=np.intp)
        for place, each in enumerate(boosters):
            roots[: len(each.roots), place] = each.roots + starts[place]
        return cls(
            left=left,
            feature=np.concatenate([*(each.feature for each in boosters), [0]]).astype(np.intp),
            threshold=np.concatenate([*(each.threshold for each in boosters), [np.float32(np.inf)]]),
            value=np.concatenate([*(each.value for each in boosters), [np.float32(0)]]),
            roots=roots,
            base=np.array([*(each.base for each in boosters), 0], dtype=np.float32),
            depth=_depth(left, roots.ravel()),
        )

    def cheaper(self, rows: int, boosters: int) -> bool:
        """Return whether walking takes less time for so many rows than a call of so many boosters each."""
        return rows * len(self.roots) * self.depth <= VISITS * boosters

    def sums(self, features: npt.NDArray[np.float64], boosters: Places) -> npt.NDArray[np.float64]:
        """Return what XGBoost predicts [n], to the last bit: it adds single-precision numbers tree by tree.

        Parameters
        ----------
        features : array [n, columns]
            Between plus and minus :data:`LARGEST`.
        boosters : array [n]
            The place of each row's booster; the number of boosters for none, which predicts 0.
        """
        values = features.astype(np.float32).ravel()
        starts = np.arange(len(features)) * features.shape[1]
        at = self.roots.take(boosters, axis=1)
        for _ in range(self.depth):
            right = values.take(starts + self.feature.take(at)) >= self.threshold.take(at)
            at = self.left.take(at) + right
        leaves = np.vstack([self.base[boosters], self.value.take(at)])
        return np.asarray(np.add.accumulate(leaves, axis=0)[-1], dtype=np.float64)


def _depth(left: Places, roots: Places) -> int:
    """Return the steps from a root to the leaf that is farthest from it."""
    depth, level = 0, roots
    while True:
        inner = level[left[level] != level]
        if not len(inner):
            return depth
        depth, level = depth + 1, np.concatenate([left[inner], left[inner] + 1])
