"""Repeats: rows of one point in several folders, measured on one machine, as one line of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import groups, identity, latest, latest_last, timed
from dlas.rows import intervals
from dlas.rows.columns import SAMPLES

LATENCY = ("latency_s", "latency_low_s", "latency_high_s")
DISTURBANCES = ("load", "steal", "drift")


def merge_repeats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line a point, its repeats merged.

    The samples of all repeats that have a time count together, as if one run had taken
    them: the median and its interval are theirs, and the interval is wide where repeats
    differ.  The point is noisy if any of them is, and has the largest of their load,
    steal and drift.  Everything else is that of the latest repeat with a time, or of the
    latest one if none has.  A copy of a row, with the same start and samples, is no repeat.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.rows.frame.read` returned.

    Returns
    -------
    DataFrame
        In the order of the latest repeats, with three more columns: ``runs``, the number of
        repeats merged; ``spread``, by how much the largest of their medians exceeds the
        smallest, as a fraction, NaN for a single run; ``folders``, a tuple of theirs.
    """
    points = latest(frame).assign(runs=1, spread=np.nan, folders=_alone)
    ordered = latest_last(frame)
    repeated = ordered[ordered.duplicated(identity(), keep=False) & timed(ordered)]
    merged = {}
    for lines in groups(repeated, identity()):
        runs = _distinct(repeated.iloc[lines])
        if len(runs) > 1:
            merged[runs.index[-1]] = _merged(runs)
    for name in next(iter(merged.values()), ()):
        column = points[name].astype(object)
        column.loc[list(merged)] = pd.Series(
            [line[name] for line in merged.values()], list(merged), dtype=object
        )
        points[name] = column.astype(points[name].dtype)
    return points


def _alone(points: pd.DataFrame) -> pd.Series:
    return pd.Series([(folder,) for folder in points["folder"]], points.index, dtype=object)


def _distinct(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of a point without copies, of which the last one stays."""
    columns = zip(runs.index, runs["started"], runs[SAMPLES], strict=True)
    lines = {(str(started), samples.tobytes()): line for line, started, samples in columns}
    return runs.loc[runs.index.isin(lines.values())]


def _merged(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the columns in which the line of several runs differs from that of the last one."""
    samples = np.concatenate(runs[SAMPLES].tolist())
    noisy = runs["noisy"].fillna(False).astype(bool)
    reasons = dict.fromkeys(runs.loc[noisy, "noisy_reason"].dropna())
    medians = runs["latency_s"]
    return {
        **dict(zip(LATENCY, intervals.medians([samples])[0].tolist(), strict=True)),
        **{name: runs[name].max() for name in DISTURBANCES},
        SAMPLES: samples,
        "samples": len(samples),
        "noisy": bool(noisy.any()),
        "noisy_reason": "; ".join(reasons) or pd.NA,
        "runs": len(runs),
        "spread": medians.max() / medians.min() - 1,
        "folders": tuple(runs["folder"]),
    }
