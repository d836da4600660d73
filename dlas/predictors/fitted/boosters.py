"""Trees that XGBoost boosted, in XGBoost's own JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost

from dlas.errors import InputError

MOST_BYTES = 256 << 20
"""Largest file that is read; 3,000 trees of depth 11 have about this size."""
OBJECTIVE = {"objective": "reg:squarederror", "tree_method": "hist", "verbosity": 0, "nthread": 1}
"""One thread, so that equal rows give equal trees."""


@dataclass(frozen=True)
class Booster:
    """Boosted trees.

    Parameters
    ----------
    model : xgboost.Booster
    columns : int
        Features of a row.
    """

    model: xgboost.Booster
    columns: int

    @classmethod
    def fitted(
        cls,
        features: npt.NDArray[np.float64],
        target: npt.NDArray[np.float64],
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
        data = xgboost.DMatrix(features, target)
        return cls(xgboost.train({**OBJECTIVE, **settings}, data, rounds), features.shape[1])

    @classmethod
    def read(cls, path: Path, columns: int) -> Booster:
        """Return the trees that :meth:`save` wrote into a file, which may come from elsewhere.

        Raises
        ------
        InputError
            If the file is missing, damaged or too large, or for another number of features.
        """
        try:
            if (size := path.stat().st_size) > MOST_BYTES:
                raise InputError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
            text = path.read_bytes()
            _check(json.loads(text), columns)
            model = xgboost.Booster(params={"nthread": 1})
            model.load_model(bytearray(text))
        except (OSError, ValueError, KeyError, TypeError, RecursionError, xgboost.core.XGBoostError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"{path} holds no trees of XGBoost: {reason}") from None
        return cls(model, columns)

    def predict(self, features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the predictions [n] of rows [n, columns]."""
        return np.asarray(self.model.inplace_predict(features), dtype=np.float64)

    def save(self, path: Path) -> None:
        """Write the trees as JSON."""
        self.model.save_model(path)

    def importances(self) -> npt.NDArray[np.float64]:
        """Return each column's share of what the splits gain."""
        gains = np.zeros(self.columns)
        for name, gain in self.model.get_score(importance_type="total_gain").items():
            gains[int(name[1:])] = float(gain)
        return gains / (gains.sum() or 1.0)


def _check(content: Any, columns: int) -> None:
    """Refuse trees whose walks may leave them or not end: XGBoost itself does not look.

    Raises
    ------
    ValueError, KeyError, TypeError
    """
    learner = content["learner"]
    if int(learner["learner_model_param"]["num_feature"]) != columns:
        raise ValueError(f"it reads other features than {columns}")
    for tree in learner["gradient_booster"]["model"]["trees"]:
        left, right, feature = (
            np.asarray(tree[name], dtype=np.int64)
            for name in ("left_children", "right_children", "split_indices")
        )
        nodes = np.arange(len(left))
        if not len(nodes) or {len(value) for value in tree.values() if isinstance(value, list) and value} != {
            len(nodes)
        }:
            raise ValueError("the arrays of a tree differ in length")
        inner = left >= 0
        ordered = (left > nodes) & (left < len(nodes)) & (right > nodes) & (right < len(nodes))
        if not np.all(np.where(inner, ordered, right < 0)):
            raise ValueError("a node of a tree has a child that does not come after it")
        if feature.min() < 0 or feature.max() >= columns:
            raise ValueError(f"a node of a tree reads a feature beyond the {columns} columns")
        if any(tree["categories"]):
            raise ValueError("a tree splits by categories")
