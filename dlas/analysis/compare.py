"""Compare the values of one axis on matched points.

Two points match when they are equal in everything but the axis: all other
layers with their options, batch, seed, and the machine that measured them.
Along the hardware, the same profile on two machines is two values.

A compiler that brings its own kernels has the algorithm ``library``.  Along
the compiler axis its row matches the rows of *every* algorithm, because it is
an alternative to each of them: ``direct`` under ``untuned`` against ONNX
Runtime, and ``gemm`` under ``untuned`` against the same ONNX Runtime.  Along
the algorithm axis such rows match none; they are counted.

Along the batch axis, the time per image is compared, not the time per batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from dlas.analysis.matching import COMPARED, by_device, groups, identity, latest, natural
from dlas.analysis.repeats import merge_repeats
from dlas.errors import InputError, unknown
from dlas.stack.types import Floats
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.study.axes import DEFAULTS
from dlas.sweep.study.parts import LIBRARY


@dataclass(frozen=True)
class ComparedRow:
    """One value's row in a group."""

    row: int
    """Line of the frame."""
    status: str
    """One of :data:`dlas.sweep.rows.results.STATUSES`."""
    reason: str | None
    latency_s: tuple[float, float, float]
    """Median, low, high; per image where the axis is the batch."""
    noisy: bool
    coverage: float
    """Share of the convolutions' multiply-adds that its algorithm computes, NaN where unknown."""
    ratio: tuple[float, float, float] | None = None
    """How many times as fast as the baseline it is, with the confidence interval. None for the baseline, and
    where either has no time.
    """

    @property
    def ok(self) -> bool:
        """Whether it has a time to compare."""
        return self.status == "ok" and self.latency_s[1] > 0

    @property
    def tie(self) -> bool:
        """Whether the interval of the ratio includes 1."""
        return self.ratio is not None and self.ratio[1] <= 1 <= self.ratio[2]


@dataclass(frozen=True)
class MatchedGroup:
    """A group of rows that differ only on the axis, by their value on it."""

    key: Mapping[str, str | None]
    rows: Mapping[str, ComparedRow]


@dataclass
class Comparison:
    """The result of a comparison."""

    axis: str
    baseline: str
    values: list[str]
    """Those with a time in some group, the baseline first."""
    groups: list[MatchedGroup]
    """Groups in which the baseline and another value have a time."""
    unmatched: list[MatchedGroup]
    """All other groups."""
    never: list[str]
    """Values without any time."""
    total: int
    """All rows, including ``library`` and ``left_out``."""
    library: int = 0
    """Rows of runtimes with kernels of their own, where the axis is the algorithm."""
    repeated: int = 0
    """Points whose repeats are merged."""
    left_out: int = 0
    """Rows of points that have a later one: repeats that failed, and copies."""
    searches: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Trials and seconds of tuning, medians over points, by value; only values that were tuned.  Where groups
    are complete, their points alone count.
    """
    accuracies: dict[str, tuple[float, float, int]] = field(default_factory=dict)
    """Where the axis is the compression: by value, the medians of the share of weights pruned (NaN where
    unknown) and of the difference in accuracy to the baseline, and the number of networks: those that have
    every value, or where there is none, those that have this one.
    """

    def frame(self) -> pd.DataFrame:
        """Return a line for each value of each group.

        ``group`` numbers the groups, whose key are the columns behind it; the compared axis holds the
        value.  ``speedup``, with its interval, is over the baseline: 2 is twice as fast.  It is missing
        for the baseline and where there is no time; groups that were not ``matched`` have none.
        """
        lines = []
        for number, group in enumerate([*self.groups, *self.unmatched]):
            for value, row in group.rows.items():
                latency, ratio = row.latency_s, row.ratio or (None, None, None)
                lines.append(
                    {"group": number, **group.key, self.axis: value, "status": row.status}
                    | dict(zip(("latency_s", "latency_low_s", "latency_high_s"), latency, strict=True))
                    | dict(zip(("speedup", "speedup_low", "speedup_high"), ratio, strict=True))
                    | {"tie": row.tie, "noisy": row.noisy, "coverage": row.coverage, "reason": row.reason}
                    | {"matched": number < len(self.groups)}
                )
        frame = pd.DataFrame(lines)
        speedups = [name for name in frame if str(name).startswith("speedup")]
        return frame.astype(dict.fromkeys(speedups, float))

    @property
    def complete(self) -> list[MatchedGroup]:
        """The groups in which every value has a time."""
        return [group for group in self.groups if all(_ok(group, value) for value in self.values)]

    def means(self) -> dict[str, float]:
        """Return each value's geometric mean of ratios over the complete groups; empty if there are none."""
        complete = self.complete
        averages = {}
        for value in self.values[1:] if complete else ():
            logs = [math.log(ratio[0]) for group in complete if (ratio := group.rows[value].ratio)]
            averages[value] = math.exp(math.fsum(logs) / len(logs))
        return averages


def compare(frame: pd.DataFrame, axis: str, baseline: str | None = None) -> Comparison:
    """Compare the values of an axis on matched points.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    axis : str
        One of the six layers, ``batch`` or ``seed``.
    baseline : str, optional
        A value's label, or its part's name if only one value has it.  By
        default the value with a time in most groups; among equals the axis's
        default (``none``, ``direct``, ``untuned``, ...), then the first by
        number or alphabet.

    Raises
    ------
    InputError
        If there is no such axis or value, or the rows have a single value.
    """
    if axis == "task":
        raise InputError("tasks are not compared: an inference and a training step are no alternatives")
    if axis not in COMPARED:
        raise unknown("axis", axis, COMPARED)
    lines = frame.reset_index(drop=True)
    lines = by_device(lines) if axis == "hardware" else lines
    compared = lines[lines["algorithm"] != LIBRARY] if axis == "algorithm" else lines
    labels = list(dict.fromkeys(compared[axis].astype(str)))
    if len(labels) < 2:
        _refuse_single(lines, axis, labels)
    points = merge_repeats(compared)
    current = latest(points, (axis,))
    matched = _groups(current, axis)
    timed = Counter(value for group in matched for value in group.rows if _ok(group, value))
    chosen = _baseline(axis, labels, baseline, timed)
    values = [chosen, *sorted((value for value in timed if value != chosen), key=natural)]
    matched = _with_ratios(current, axis, matched, chosen)
    return Comparison(
        axis=axis,
        baseline=chosen,
        values=values,
        groups=[group for group in matched if _has_ratio(group)],
        unmatched=[group for group in matched if not _has_ratio(group)],
        never=sorted(set(labels) - set(values), key=natural),
        total=len(lines),
        library=len(lines) - len(compared),
        repeated=int((current["runs"] > 1).sum()),
        left_out=len(compared) - int(current["runs"].sum()),
        searches=_searches(current.loc[_shared_rows(matched, values)], axis),
        accuracies=_accuracies(current, chosen) if axis == "compression" else {},
    )


def _shared_rows(matched: Sequence[MatchedGroup], values: Sequence[str]) -> list[int]:
    """Return the lines of the groups in which every value has a time; of all groups if none is such."""
    complete = [group for group in matched if all(_ok(group, value) for value in values)]
    return sorted({row.row for group in complete or matched for row in group.rows.values()})


def _searches(frame: pd.DataFrame, axis: str) -> dict[str, tuple[float, float]]:
    """Return the trials and seconds of tuning by value, medians over points."""
    tuned = frame[frame["trials"].notna() & frame["search_s"].notna()]
    medians = tuned.groupby(tuned[axis].astype(str))[["trials", "search_s"]].median()
    return {str(value): (float(trials), float(search_s)) for value, trials, search_s in medians.itertuples()}


def _accuracies(frame: pd.DataFrame, baseline: str) -> dict[str, tuple[float, float, int]]:
    """Return, by compression, the share pruned, the change of accuracy and the number of networks."""
    same = ["dataset", "model", "seed"]
    networks = frame.dropna(subset=["accuracy"]).drop_duplicates([*same, "compression"])
    first = networks[networks["compression"] == baseline].set_index(same)["accuracy"].rename("first")
    both = networks[networks["compression"] != baseline].join(first, on=same).dropna(subset=["first"])
    values = both.groupby(same, dropna=False)["compression"].transform("size")
    complete = both[values == both["compression"].nunique()]
    chosen = complete if len(complete) else both
    changed = chosen.assign(change=chosen["accuracy"] - chosen["first"]).groupby("compression")
    return {
        str(value): (inside["ratio"].median(), inside["change"].median(), len(inside))
        for value, inside in changed
    }


def _refuse_single(frame: pd.DataFrame, axis: str, labels: Sequence[str]) -> None:
    varying = [name for name in COMPARED if frame[name].nunique() > 1]
    only = f"the one value {labels[0]!r}" if labels else "no value"
    varied = f"; what varies is: {', '.join(varying)}" if varying else "; nothing varies in them"
    raise InputError(f"the rows have {only} on the axis {axis!r}, so there is nothing to compare{varied}")


def _baseline(axis: str, labels: Sequence[str], requested: str | None, timed: Mapping[str, int]) -> str:
    """Return the label of the baseline."""
    if requested is not None:
        named = [label for label in labels if label == requested] or [
            label for label in labels if label.partition("(")[0] == requested
        ]
        if len(named) != 1:
            raise unknown(f"value of {axis} as the baseline", requested, labels)
        return named[0]
    plain = [str(value) for value in DEFAULTS.get(axis, ())]
    return min(labels, key=lambda label: (-timed.get(label, 0), label not in plain, natural(label)))


def _groups(frame: pd.DataFrame, axis: str) -> list[MatchedGroup]:
    """Return the rows in groups that match, in the order of their first rows."""
    names = [name for name in identity((axis,)) if name != "algorithm"]
    keys = {name: _texts(frame[name]) for name in identity((axis,))}
    values, rows = _texts(frame[axis]), _compared_rows(frame, axis)
    algorithms = _texts(frame["algorithm"])
    matched = []
    for lines in groups(frame, names):
        for own, shared in _by_algorithm(algorithms, lines.tolist(), axis):
            key = {name: texts[(own or shared)[0]] for name, texts in keys.items()}
            by_value = {str(values[line]): rows[line] for line in (*own, *shared)}
            ordered = sorted(by_value.items(), key=lambda item: item[1].row)
            matched.append(MatchedGroup(key, dict(ordered)))
    return sorted(matched, key=lambda group: min(row.row for row in group.rows.values()))


def _by_algorithm(
    algorithms: Sequence[str | None], lines: Sequence[int], axis: str
) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield the lines of each algorithm, and those of libraries, which match every algorithm."""
    if axis == "algorithm":
        yield lines, []
        return
    shared: list[int] = []
    own: dict[str | None, list[int]] = {}
    for line in lines:
        library = axis == "compiler" and algorithms[line] == LIBRARY
        (shared if library else own.setdefault(algorithms[line], [])).append(line)
    for each in own.values() if own else [[]]:
        yield each, shared


def _compared_rows(frame: pd.DataFrame, axis: str) -> list[ComparedRow]:
    """Return the status and time of each row; per image along the batch axis."""
    share = frame["batch"].to_numpy(dtype=float) if axis == "batch" else np.ones(len(frame))
    times = frame[["latency_s", "latency_low_s", "latency_high_s"]].to_numpy(dtype=float) / share[:, None]
    noisy = frame["noisy"].fillna(False).to_numpy(dtype=bool)
    reasons = _texts(frame["reason"])
    columns = frame.index, frame["status"], reasons, times.tolist(), noisy.tolist()
    coverage = frame["coverage"].tolist()
    return [
        ComparedRow(int(row), str(status), reason, (median, low, high), disturbed, share)
        for row, status, reason, (median, low, high), disturbed, share in zip(*columns, coverage, strict=True)
    ]


def _texts(column: pd.Series) -> list[str | None]:
    return [None if pd.isna(value) else str(value) for value in column]


def _ok(group: MatchedGroup, value: str) -> bool:
    return value in group.rows and group.rows[value].ok


def _has_ratio(group: MatchedGroup) -> bool:
    return any(row.ratio is not None for row in group.rows.values())


def _with_ratios(
    frame: pd.DataFrame, axis: str, matched: Sequence[MatchedGroup], baseline: str
) -> list[MatchedGroup]:
    """Return the groups with the speed-ups over the baseline of all values that have a time."""
    pairs = [
        (number, value)
        for number, group in enumerate(matched)
        if _ok(group, baseline)
        for value in group.rows
        if value != baseline and _ok(group, value)
    ]
    samples, batch = frame[SAMPLES].to_dict(), frame["batch"].to_dict()

    def times(number: int, value: str) -> Floats:
        row = matched[number].rows[value].row
        share = batch[row] if axis == "batch" else 1
        return np.asarray(samples[row], dtype=float) / share

    filled = [dict(group.rows) for group in matched]
    # The random numbers of a value must not depend on which of two is the baseline: then exchanging
    # the baseline inverts every interval exactly, and a tie stays a tie.
    for swapped in (False, True):
        chosen = [(number, value) for number, value in pairs if (value < baseline) is swapped]
        above = [times(number, baseline) for number, _ in chosen]
        below = [times(number, value) for number, value in chosen]
        ratios = intervals.ratios(above, below, streams=(1, 0) if swapped else (0, 1))
        for (number, value), (ratio, low, high) in zip(chosen, ratios.tolist(), strict=True):
            filled[number][value] = replace(filled[number][value], ratio=(ratio, low, high))
    return [replace(group, rows=rows) for group, rows in zip(matched, filled, strict=True)]
