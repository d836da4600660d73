"""Repeats: rows of one point in several folders, measured on one machine, as one line of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import groups, identity, latest, latest_last, timed
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES

LATENCY = ("latency_s", "latency_low_s", "latency_high_s")
DISTURBANCES = ("load", "steal", "drift")
Cells = Mapping[str, Sequence[Any]]
"""A table as columns of Python values."""


def merge_repeats(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line a point, its repeats merged.

    The samples of all repeats that have a time count together, as if one run had taken
    them: the median and its interval are theirs, and the interval is wide where repeats
    differ.  The point is noisy or throttled if any of them is, and has the largest of their
    load, steal and drift.  Everything else is that of the latest repeat with a time, or of the
    latest one if none has.  A copy of a row, with the same start and samples, is no repeat.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.

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
    cells = {str(name): repeated[name].tolist() for name in repeated}
    runs_of = [_without_copies(lines.tolist(), cells) for lines in groups(repeated, identity())]
    runs_of = [runs for runs in runs_of if len(runs) > 1]
    if not runs_of:
        return points
    lines = repeated.index[[runs[-1] for runs in runs_of]]
    for name, values in _merged(runs_of, cells).items():
        column = points[name].astype(object)
        column.loc[lines] = pd.Series(values, lines, dtype=object)
        points[name] = column.astype(points[name].dtype)
    return points


def _alone(points: pd.DataFrame) -> pd.Series:
    return pd.Series([(folder,) for folder in points["folder"]], points.index, dtype=object)


def _without_copies(runs: Sequence[int], cells: Cells) -> list[int]:
    """Return the runs of a point, of equal ones the last."""
    distinct = {(str(cells["started"][run]), cells[SAMPLES][run].tobytes()): run for run in runs}
    return sorted(distinct.values())


def _merged(runs_of: Sequence[Sequence[int]], cells: Cells) -> Cells:
    """Return the columns in which merged lines differ from their last run."""
    samples = [np.concatenate([cells[SAMPLES][run] for run in runs]) for runs in runs_of]
    medians = [[cells["latency_s"][run] for run in runs] for runs in runs_of]
    noisy, throttled = (
        [[run for run in runs if cells[name][run] is True] for runs in runs_of]
        for name in ("noisy", "throttled")
    )
    return {
        **dict(zip(LATENCY, intervals.medians(samples).T.tolist(), strict=True)),
        **{name: [_largest(cells[name][run] for run in runs) for runs in runs_of] for name in DISTURBANCES},
        SAMPLES: samples,
        "samples": list(map(len, samples)),
        "noisy": list(map(bool, noisy)),
        "noisy_reason": [_reasons(cells["noisy_reason"][run] for run in runs) for runs in noisy],
        "throttled": [
            bool(own) or cells["throttled"][runs[-1]] for own, runs in zip(throttled, runs_of, strict=True)
        ],
        "runs": list(map(len, runs_of)),
        "spread": [max(each) / min(each) - 1 for each in medians],
        "folders": [tuple(cells["folder"][run] for run in runs) for runs in runs_of],
    }


def _largest(values: Iterable[float]) -> float:
    """Return the largest value that is known, NaN if none is."""
    return max((value for value in values if not np.isnan(value)), default=np.nan)


def _reasons(reasons: Iterable[Any]) -> Any:
    return "; ".join(dict.fromkeys(str(reason) for reason in reasons if pd.notna(reason))) or pd.NA
