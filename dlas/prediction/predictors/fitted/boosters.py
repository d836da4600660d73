"""Trees that XGBoost boosted, in XGBoost's own JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dlas.errors import InputError, one_line
from dlas.prediction.predictors.fitted.walks import Nodes, Tree
from dlas.stack.types import Floats

if TYPE_CHECKING:
    import xgboost

MOST_BYTES = 256 << 20
"""Largest file that is read; 3,000 trees of depth 11 have about this size."""
UNREADABLE = (OSError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError)
"""What reading damaged JSON raises."""
ROOT = 2**31 - 1
"""The parent of a tree's first node, in XGBoost's JSON."""
OBJECTIVE = {"objective": "reg:squarederror", "tree_method": "hist", "verbosity": 0, "nthread": 1}
"""One thread, so that equal rows give equal trees."""


@dataclass(frozen=True)
class Booster:
    """Boosted trees."""

    model: xgboost.Booster
    columns: int
    """Features of a row."""
    nodes: Nodes | None = None
    """The trees as arrays, where they were read from a file."""

    @classmethod
    def fitted(
        cls,
        features: Floats,
        target: Floats,
        rounds: int,
        settings: Mapping[str, Any],
    ) -> Booster:
        """Return trees fitted to rows.

        Parameters
        ----------
        features : array [n, columns]
        target : array [n]
        rounds : int
            Number of trees.
        settings : mapping
            XGBoost's parameters.
        """
        import xgboost

        data = xgboost.DMatrix(features, target, nthread=1)
        return cls(xgboost.train({**OBJECTIVE, **settings}, data, rounds), features.shape[1])

    @classmethod
    def read(cls, path: Path, columns: int) -> Booster:
        """Return the trees that :meth:`save` wrote into a file, which may come from elsewhere.

        Raises
        ------
        InputError
            If the file is missing, damaged or too large, or for another number of features.
        """
        import xgboost

        try:
            if (size := path.stat().st_size) > MOST_BYTES:
                raise InputError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
            text = path.read_bytes()
            nodes = _checked(json.loads(text), columns)
            model = xgboost.Booster(params={"nthread": 1})
            model.load_model(bytearray(text))
        except (*UNREADABLE, xgboost.core.XGBoostError) as error:
            reason = str(error).partition("\n")[0]  # XGBoost's stack follows
            raise InputError(f"{path} holds no trees of XGBoost: {one_line(reason)}") from None
        return cls(model, columns, nodes)

    def predict(self, features: Floats) -> Floats:
        """Return the predictions [n] of rows [n, columns]."""
        return np.asarray(self.model.inplace_predict(features, validate_features=False), dtype=np.float64)

    def save(self, path: Path) -> None:
        """Write the trees as JSON."""
        self.model.save_model(path)


def _checked(content: Any, columns: int) -> Nodes | None:
    """Return the trees, and refuse those whose walks may leave them or not end, or that nothing here writes.

    XGBoost itself checks little of what it loads.

    Raises
    ------
    ValueError, KeyError, TypeError
    """
    learner = content["learner"]
    told, booster = learner["learner_model_param"], learner["gradient_booster"]
    if int(told["num_feature"]) != columns:
        raise ValueError(f"it reads other features than {columns}")
    if booster["name"] != "gbtree" or int(told["num_class"]) or int(told["num_target"]) != 1:
        raise ValueError("expected trees with a single output")
    model = booster["model"]
    trees, count = model["trees"], len(model["trees"])
    whole = [tree["id"] for tree in trees] == list(range(count)) and not any(model["tree_info"])
    if not whole or len(model["tree_info"]) != count or model["iteration_indptr"] != list(range(count + 1)):
        raise ValueError("the trees are not one for each round")
    base = np.ravel(json.loads(told["base_score"]))
    if base.shape != (1,) or not np.isfinite(base.astype(np.float64)).all():
        raise ValueError("expected a number that the trees are added to")
    return Nodes.of([_checked_tree(tree, columns) for tree in trees], float(base[0])) if count else None


def _checked_tree(tree: Any, columns: int) -> Tree:
    """Return a tree whose arrays fit each other.

    Raises
    ------
    ValueError, KeyError, TypeError
    """
    left, right, parents, feature = (
        np.asarray(tree[name], dtype=np.int64)
        for name in ("left_children", "right_children", "parents", "split_indices")
    )
    nodes = np.arange(len(left))
    arrays = [value for name, value in tree.items() if not name.startswith("categories")]
    lengths = {len(value) for value in arrays if isinstance(value, list)}
    if lengths != {len(nodes)} or not len(nodes) or int(tree["tree_param"]["num_nodes"]) != len(nodes):
        raise ValueError("the arrays of a tree differ in length")
    inner = left >= 0
    ordered = (left > nodes) & (left < len(nodes)) & (right > nodes) & (right < len(nodes))
    if not np.all(np.where(inner, ordered, (left == -1) & (right == -1))):
        raise ValueError("a node of a tree has a child that does not come after it")
    expected = np.full(len(nodes), ROOT)
    expected[left[inner]] = expected[right[inner]] = nodes[inner]
    if not np.array_equal(parents, expected):
        raise ValueError("a node of a tree has another parent than it is a child of")
    if feature.min() < 0 or feature.max() >= columns:
        raise ValueError(f"a node of a tree reads a feature beyond the {columns} columns")
    conditions = np.asarray(tree["split_conditions"], dtype=np.float64)
    if not np.isfinite(conditions).all():
        raise ValueError("a value of a tree is not a finite number")
    if any(tree["split_type"]) or any(value for name, value in tree.items() if name.startswith("categories")):
        raise ValueError("a tree splits by categories")
    if int(tree["tree_param"]["size_leaf_vector"]) > 1:
        raise ValueError("expected trees with a single output")
    return left, right, feature, conditions
