"""What latencies usually grow with, known of points before one is measured: work, and how it is computed.

Each is a number of every point and a usual slope.  How far a slope is from what is usual, in general and for
one part or another, is fitted with all else (:mod:`dlas.prediction.adaptive.share.covariance`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlas.prediction.learning.features.kernels import skips_zeros
from dlas.stack import Algorithm, TuningCompiler
from dlas.stack.types import Floats
from dlas.sweep.study import parts
from dlas.sweep.study.axes import DEFAULTS
from dlas.sweep.study.parts import LIBRARY
from dlas.sweep.study.point import Choice

CHANNELS = "channels left"
UNTUNED = str(DEFAULTS["compiler"][0])
"""The compiler that schedules with threads alone."""
SLOPES = {
    "multiply-adds": (0.9, 0.3),
    "batch": (0.9, 0.2),
    "threads": (-0.6, 0.4),
    "weights left": (0.8, 0.3),
    CHANNELS: (1.2, 0.5),
    "without a schedule": (3.0, 1.0),
    "searched": (-0.1, 0.2),
    "chosen by layer": (-0.3, 0.3),
}
"""For each trend its usual slope and the standard deviation around it.

Time grows a little less than multiply-adds and batches, and falls less than threads multiply.  Code with
threads alone is some twenty times slower, a search gains a little over a good schedule, and so does the best
algorithm for each layer over one for all.
"""


@dataclass(frozen=True)
class Trend:
    """A number of each point, with which the logarithm of its latency usually changes."""

    name: str
    """One of :data:`SLOPES`."""
    values: Floats
    """Logarithms, or 1 where something holds and 0 where not; less their mean, and 0 where unknown; [n]."""

    @property
    def slope(self) -> float:
        """By how much the logarithm of a latency usually changes with the values."""
        return SLOPES[self.name][0]

    @property
    def doubt(self) -> float:
        """The standard deviation of slopes around the usual one."""
        return SLOPES[self.name][1]


def trends(axes: Mapping[str, Sequence[Any]]) -> tuple[Trend, ...]:
    """Return the trends in which points differ, without that of multiply-adds.

    Parameters
    ----------
    axes : mapping of str to sequence
        By axis the value of each point.
    """
    compilers, algorithms = ([choice.name for choice in axes[axis]] for axis in ("compiler", "algorithm"))
    found = {
        "batch": [math.log(batch) for batch in axes["batch"]],
        "threads": [_threads(choice) for choice in axes["hardware"]],
        "weights left": [
            _left(choice, masked=True) * skips_zeros(name)
            for choice, name in zip(axes["compression"], algorithms, strict=True)
        ],
        CHANNELS: [_left(choice, masked=False) for choice in axes["compression"]],
        "without a schedule": [float(name == UNTUNED) for name in compilers],
        "searched": [float(_searches(name)) for name in compilers],
        "chosen by layer": [float(_delegates(name)) for name in algorithms],
    }
    each = (Trend(name, centred(np.array(values))) for name, values in found.items())
    return tuple(trend for trend in each if trend.values.any())


def centred(values: Floats) -> Floats:
    """Return values less their mean, 0 where one is NaN, and where all are equal."""
    known = values[~np.isnan(values)]
    if not len(known) or known.min() == known.max():
        return np.zeros(len(values))
    return np.asarray(np.nan_to_num(values - known.mean()), dtype=np.float64)


def _threads(hardware: Choice) -> float:
    """Return the logarithm of the threads that a study asks for, NaN where it does not."""
    threads = dict(hardware.options).get("threads")
    return math.log(threads) if isinstance(threads, int) and threads > 0 else math.nan


def _left(compression: Choice, masked: bool) -> float:
    """Return the logarithm of the share that pruning leaves.

    Parameters
    ----------
    masked : bool
        Of weights, by techniques that set them to zero; or else of channels, by those that remove them.
    """
    logarithm = 0.0
    for link in compression.chain or (compression,):
        given = {**parts.find("compression", link.name).options(), **dict(link.options)}
        level = given.get("level")
        if isinstance(level, int | float) and 0 <= level < 1 and _masks(link.name) == masked:
            logarithm += math.log1p(-level)
    return logarithm


@functools.cache
def _masks(technique: str) -> bool:
    """Return whether a technique sets weights to zero and leaves the network its shape."""
    from dlas.axes.compression.pruning.masked import MaskedPruning  # it imports torch

    return issubclass(parts.find("compression", technique).cls, MaskedPruning)


@functools.cache
def _delegates(algorithm: str) -> bool:
    """Return whether an algorithm has others compute the layers; a runtime's kernels do not."""
    if algorithm == LIBRARY:
        return False
    return parts.find("algorithm", algorithm).cls.delegates is not Algorithm.delegates


@functools.cache
def _searches(compiler: str) -> bool:
    """Return whether a compiler searches for schedules."""
    return issubclass(parts.find("compiler", compiler).cls, TuningCompiler)
