"""``experiments/compression-digits``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from benchmarks.recomputed.kept import EXPERIMENTS, one, only, points, ratio
from benchmarks.recomputed.markdown import Value
from dlas.analysis.repeats import merge_repeats
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.trajectories import START, Trajectory

ROWS = "compression-digits/rows"
TYPES = {
    "dense": {"compression": "none"},
    "`float16`": {"compression": "float16"},
    "`int8`, calibrated": {"compression": "int8"},
    "on noise": {"compression": "int8(calibration=none)"},
}
"""The compression of each column of the table of number types."""


@cache
def _curves() -> dict[tuple[str, str], Trajectory]:
    """Return the curves by the network's name and the technique's."""
    details = read_details(merge_repeats(read(EXPERIMENTS / ROWS)))
    return {(curve.model.partition("(")[0], curve.name): curve for curve in details.trajectories}


def _of_curve(technique: str, cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a network's accuracy at each level, and the level at its elbow, in percent."""
    curve = _curves()[cells["network"].strip("`"), technique]
    accuracies = {f"{100 * level:.0f} %": 100 * step.accuracy for (level, _), step in curve.steps.items()}
    (elbow,) = curve.elbows
    found = {"dense": 100 * curve.steps[START].accuracy, **accuracies, "elbow": 100 * elbow[0]}
    return {column: found[column] for column in cells if column != "network"}


def weight_pruning(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the accuracy of a network at each level, in percent."""
    return _of_curve("weight_pruning", cells)


def block_pruning(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the accuracy of a network at each level, in percent."""
    return _of_curve("block_pruning", cells)


def channel_pruning(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the accuracy of a network at each level, in percent."""
    return _of_curve("channel_pruning", cells)


def compact_channel_pruning(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the accuracy of a network at each level, in percent."""
    return _of_curve("compact_channel_pruning", cells)


def types(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a network's accuracy in each number type, in percent."""
    frame = only(points(ROWS), model_name=cells["network"].strip("`"))
    return {column: 100 * one(frame, "accuracy", **TYPES[column]) for column in cells if column != "network"}


def removed_channels(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return what a network without some of its channels computes, how right it is, and how much faster."""
    frame = only(points(ROWS), model_name=cells["network"].strip("`"))
    level = float(cells["level"].rstrip(" %")) / 100
    pruned = only(frame, compression=f"compact_channel_pruning(level={level:g})")
    work = one(pruned, "macs") / one(frame, "macs", compression="none")
    return {
        "multiply-adds left": 100 * work,
        "accuracy": 100 * one(pruned, "accuracy"),
        "expected speed-up": 1 / work,
        "measured speed-up": ratio(one(frame, "latency_s", compression="none"), one(pruned, "latency_s")),
    }
