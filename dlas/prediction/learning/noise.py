"""The noise floor: by how much two measurements of the same point differ.

No predictor can be told to be better than that: where a point's two times are 4 % apart, an error
of 3 % says nothing about the predictor.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dlas.analysis.matching import result_in

REPEAT = ("id", "machine_id", "instance", "threads")
"""Columns that are equal in measurements of the same point."""


def noise_floor(frame: pd.DataFrame, target: str) -> float | None:
    """Return the mean relative error of one measurement that noise alone causes.

    For points that were measured twice or more, in folders of their own, it is the mean of
    ``|a - b| / ((a + b) / 2)`` over the point's pairs, over the square root of 2: a predictor that
    knew each point's mean would still have about this error.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    target : str
        A column of it.

    Returns
    -------
    float or None
        None where no point was measured twice.
    """
    known = frame[result_in(frame, target)]
    keys = [name for name in REPEAT if name in known]
    apart = [_apart(values) for _, values in known.groupby(keys, dropna=False)[target] if len(values) > 1]
    return float(np.mean(apart)) / math.sqrt(2) if apart else None


def _apart(values: pd.Series[float]) -> float:
    """Return the mean relative difference of all pairs of values."""
    array = values.to_numpy(dtype=float)
    first, second = np.triu_indices(len(array), 1)
    pairs = np.abs(array[first] - array[second]) / ((array[first] + array[second]) / 2)
    return float(pairs.mean())
