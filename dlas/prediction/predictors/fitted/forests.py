"""Forests of regression trees as arrays, which numpy walks; no class of a library is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError
from dlas.stack.types import Floats

ARRAYS = {
    "feature": np.int32,
    "threshold": np.float32,
    "right": np.int32,
    "value": np.float64,
    "roots": np.int32,
}
"""The arrays of a forest and their types."""


@dataclass(frozen=True)
class Forest:
    """Regression trees, whose predictions are averaged.

    Nodes are in depth-first order: from node ``i`` a row goes to ``i + 1`` where
    ``x[feature] <= threshold``, in single precision as in scikit-learn, else to ``right``.
    A leaf is its own right child and has the threshold minus infinity.
    """

    feature: npt.NDArray[np.int32]
    """[nodes] of int32."""
    threshold: npt.NDArray[np.float32]
    """[nodes] of float32."""
    right: npt.NDArray[np.int32]
    """[nodes] of int32."""
    value: Floats
    """[nodes] of float64."""
    roots: npt.NDArray[np.int32]
    """The first node of each tree; [trees] of int32."""
    columns: int
    """Features of a row."""

    @classmethod
    def of(cls, ensemble: Any) -> Forest:
        """Return the trees of a fitted scikit-learn ensemble as arrays."""
        parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in ARRAYS}
        start = 0
        for tree in (estimator.tree_ for estimator in ensemble.estimators_):
            own, leaf = np.arange(tree.node_count), tree.children_left < 0
            assert np.array_equal(tree.children_left[~leaf], own[~leaf] + 1), "nodes are not depth first"
            parts["feature"].append(np.where(leaf, 0, tree.feature))
            parts["threshold"].append(np.where(leaf, -np.inf, _rounded_down(tree.threshold)))
            parts["right"].append(start + np.where(leaf, own, tree.children_right))
            parts["value"].append(tree.value[:, 0, 0])
            parts["roots"].append(np.array([start]))
            start += tree.node_count
        arrays = {name: np.concatenate(parts[name]).astype(kind) for name, kind in ARRAYS.items()}
        return cls(**arrays, columns=ensemble.n_features_in_)

    @classmethod
    def read(cls, arrays: Mapping[str, npt.NDArray[Any]], columns: int) -> Forest:
        """Return the forest in arrays from a file, which may be damaged.

        Raises
        ------
        InputError
            If an array is missing or of another type, or a walk could leave the trees or not end.
        """
        for name, kind in ARRAYS.items():
            if name not in arrays or arrays[name].dtype != kind or arrays[name].ndim != 1:
                raise InputError(f"the trees have no array {name!r} of {np.dtype(kind).name}")
        forest = cls(**{name: arrays[name] for name in ARRAYS}, columns=columns)
        forest._check()
        return forest

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return its arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    def predict(self, features: Floats) -> Floats:
        """Return the mean over the trees for each row.

        Parameters
        ----------
        features : array [n, columns]
        """
        rows = np.ascontiguousarray(features, dtype=np.float32)
        if len(rows) < len(self.roots):  # few rows: all trees of a row at once, since each call has a price
            return np.array([self._descend(row).mean() for row in rows])
        # Many rows: tree by tree, since one tree stays in the processor's cache.
        values, starts = rows.ravel(), np.arange(len(rows)) * self.columns
        total = np.zeros(len(rows))
        for root in self.roots:
            total += self._walk(np.full(len(rows), root, dtype=np.intp), values, starts)
        return total / len(self.roots)

    def _descend(self, row: npt.NDArray[np.float32]) -> Floats:
        """Return the value that each tree has for one row."""
        nodes = self.roots.astype(np.intp)
        while True:
            smaller = row.take(self.feature.take(nodes)) <= self.threshold.take(nodes)
            below = np.where(smaller, nodes + 1, self.right.take(nodes))
            if (below == nodes).all():
                return self.value.take(nodes)
            nodes = below

    def _walk(
        self, nodes: npt.NDArray[np.intp], values: npt.NDArray[np.float32], starts: npt.NDArray[np.int_]
    ) -> Floats:
        """Return the values of the leaves that walks from ``nodes`` end in; ``nodes`` is overwritten.

        Each walk reads the row whose features start at its place of ``starts`` in ``values``.
        """
        at, walking = nodes, np.arange(len(nodes))
        while len(walking):
            smaller = values.take(starts + self.feature.take(at)) <= self.threshold.take(at)
            below = np.where(smaller, at + 1, self.right.take(at))
            going = np.flatnonzero(below != at)
            nodes[walking] = below
            at, walking, starts = below[going], walking[going], starts[going]
        return self.value.take(nodes)

    def _check(self) -> None:
        """Refuse trees whose walks may leave them or not end."""
        nodes = len(self.feature)
        if not nodes or not len(self.roots):
            raise InputError("the trees have no nodes")
        if {len(array) for name, array in self.arrays().items() if name != "roots"} != {nodes}:
            raise InputError("the arrays of the trees differ in length")
        own = np.arange(nodes)
        leaf = (self.right == own) & (self.threshold == -np.inf)
        inner = (self.right > own + 1) & (self.right < nodes) & np.isfinite(self.threshold)
        if not np.all(leaf | inner):
            raise InputError("a node of the trees has a child that does not come after it")
        if self.roots.min() < 0 or self.roots.max() >= nodes:
            raise InputError("a tree has no root")
        if self.feature.min() < 0 or self.feature.max() >= self.columns:
            raise InputError(f"a node of the trees reads a feature beyond the {self.columns} columns")
        if not np.isfinite(self.value).all():
            raise InputError("a value of the trees is not a finite number")


def _rounded_down(thresholds: Floats) -> npt.NDArray[np.float32]:
    """Return the largest single-precision numbers that are not above the thresholds.

    A number in single precision is at most one exactly where it is at most the other.
    """
    nearest = thresholds.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest > thresholds, below, nearest)
