"""The break-even: the sparsity above which a pruned network is faster than the fastest dense code.

A curve is one algorithm under one compiler over the levels of one technique.  The baseline of
its speed-ups is the fastest dense point of the setting, of any algorithm, compiler or library.
A dense library takes as long on a pruned network as on the dense one.  Where it ran the pruned
network, in turns with the sparse kernels, that time is the baseline instead, so that changes of
the machine's speed cancel out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import SETTING, groups, natural
from dlas.analysis.roles import DENSE
from dlas.analysis.winners import Times
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.trajectories import CHOOSING
from dlas.sweep.study.parts import LIBRARY

KEYS = ["technique", "algorithm", "compiler"]


@dataclass(frozen=True)
class SpeedCurve:
    """Speed-up over dense code, by level."""

    setting: Mapping[str, object]
    """Dataset, model, hardware, machine, batch, task and seed."""
    technique: str
    algorithm: str
    compiler: str
    """The compression without its level; the algorithm and compiler."""
    dense: int
    """Line of the fastest dense point."""
    points: list[int]
    """Lines of the curve's points, by rising ratio."""
    ratios: list[float]
    """Share of the convolutions' weights that is zero or gone."""
    speeds: list[tuple[float, float, float]]
    """Speed-up over the dense point: median, and ends of its confidence interval."""

    @property
    def break_even(self) -> float:
        """The ratio above which it is as fast as dense code; see :func:`crossing`."""
        return crossing(self.ratios, [speed for speed, _, _ in self.speeds])

    @property
    def in_words(self) -> str:
        """The break-even in words."""
        return worded(self.break_even, self.ratios)


def crossing(levels: Sequence[float], speeds: Sequence[float]) -> float:
    """Return the level above which the speed-up stays at 1 or more.

    Parameters
    ----------
    levels : sequence of float
        Shares pruned, rising.
    speeds : sequence of float
        Speed-up over dense code at each level; NaN where it is unknown.

    Returns
    -------
    float
        Interpolated between two levels, linearly in the logarithm of the speed-up.  Minus infinity where
        all levels are as fast, infinity where the highest is not, NaN where no speed-up is known.
    """
    logs = [(level, math.log(speed)) for level, speed in zip(levels, speeds, strict=True) if speed > 0]
    if not logs:
        return math.nan
    slower = [place for place, (_, log) in enumerate(logs) if log < 0]
    if not slower:
        return -math.inf
    if slower[-1] == len(logs) - 1:
        return math.inf
    (below, first), (above, second) = logs[slower[-1] : slower[-1] + 2]
    return float(np.interp(0, [first, second], [below, above]))


def worded(level: float, levels: Sequence[float]) -> str:
    """Return a crossing as text: ``57 %``, ``already at 50 %``, ``not below 98 %``."""
    if math.isnan(level):
        return ""
    if math.isinf(level):
        return (
            f"already at {100 * min(levels):.0f} %" if level < 0 else f"not below {100 * max(levels):.0f} %"
        )
    return f"{100 * level:.0f} %"


def technique(compression: str) -> str:
    """Return a compression's label without the level of its last technique that has one.

    ``weight_pruning(level=0.9, scope=layer)`` is ``weight_pruning(scope=layer)``.
    """
    links = compression.split("+")
    levelled = [place for place, link in enumerate(links) if "level=" in link]
    for place in levelled[-1:]:
        name, _, options = links[place].removesuffix(")").partition("(")
        common = [option for option in options.split(", ") if option.partition("=")[0] not in CHOOSING]
        links[place] = f"{name}({', '.join(common)})" if common else name
    return "+".join(links)


def curves(points: pd.DataFrame) -> list[SpeedCurve]:
    """Return the curves that have times of at least two levels and of the dense network.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    """
    labels, library = points["compression"].astype(str), (points["algorithm"] == LIBRARY).to_numpy()
    keys = points[KEYS[1:]].assign(
        technique=labels.map({label: technique(label) for label in labels.unique()})
    )
    names = (*SETTING, "compression", "ratio", "latency_s", SAMPLES)
    columns = {name: points[name].tolist() for name in names} | {name: keys[name].tolist() for name in KEYS}
    times, pruned = Times(points), (points["kind"] == "pruned").to_numpy(dtype=bool)
    speed_curves, is_dense = [], (labels == DENSE).to_numpy(dtype=bool)
    for inside in groups(points, SETTING):
        dense = times.fastest(inside[is_dense[inside]])
        if not dense.points or not pruned[inside].any():
            continue
        timed = inside[~np.isnan(times.median[inside])]
        libraries = _stand_ins(columns, times, timed[library[timed]])
        chosen = timed[pruned[timed] & ~np.isin(timed, [line for line, _ in libraries.values()])]
        for lines in groups(keys.iloc[chosen], KEYS):
            levels = _levels(columns, times, chosen[lines])
            if len(levels) > 1:
                speed_curves.append(_curve(columns, dense.points[0], libraries, levels))
    return sorted(speed_curves, key=lambda curve: [natural(getattr(curve, key)) for key in KEYS])


Columns = Mapping[str, Sequence[Any]]
"""Values of all points by the name of their column: a row of a table of 60,000 takes a millisecond."""


def _levels(columns: Columns, times: Times, lines: npt.NDArray[np.intp]) -> list[int]:
    """Return the fastest line of each ratio, by rising ratio."""
    fastest: dict[float, int] = {}
    for line in lines[np.argsort(times.median[lines], kind="stable")].tolist():
        ratio = columns["ratio"][line]
        if pd.notna(ratio):
            fastest.setdefault(float(ratio), line)
    return [fastest[ratio] for ratio in sorted(fastest)]


def _stand_ins(columns: Columns, times: Times, lines: npt.NDArray[np.intp]) -> dict[str, tuple[int, float]]:
    """Return, by compression, the line of the fastest library that ran it, and that library's dense time."""
    compressions, compilers = columns["compression"], columns["compiler"]
    ordered = lines[np.argsort(times.median[lines], kind="stable")].tolist()
    stand_ins: dict[str, tuple[int, float]] = {}
    for fastest in ordered:
        if compressions[fastest] != DENSE:
            continue
        for line in lines.tolist():
            if compilers[line] == compilers[fastest] and compressions[line] != DENSE:
                stand_ins.setdefault(str(compressions[line]), (line, float(columns["latency_s"][fastest])))
    return stand_ins


def _curve(
    columns: Columns, dense: int, libraries: Mapping[str, tuple[int, float]], lines: list[int]
) -> SpeedCurve:
    samples, first, dense_s = columns[SAMPLES], lines[0], float(columns["latency_s"][dense])
    against = [libraries.get(str(columns["compression"][line]), (dense, dense_s)) for line in lines]
    ratios = intervals.ratios([samples[line] for line, _ in against], [samples[line] for line in lines])
    ratios = ratios * np.array([[dense_s / taken] for _, taken in against])
    return SpeedCurve(
        setting={name: columns[name][first] for name in SETTING},
        technique=str(columns["technique"][first]),
        algorithm=str(columns["algorithm"][first]),
        compiler=str(columns["compiler"][first]),
        dense=dense,
        points=lines,
        ratios=[float(columns["ratio"][line]) for line in lines],
        speeds=[(speed, low, high) for speed, low, high in ratios.tolist()],
    )
