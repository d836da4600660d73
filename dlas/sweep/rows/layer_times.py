"""Times of layers without the cost of timing them.

Layers are timed in runs of their own, in which a profiler reads its clock around every
layer.  What it does between its two readings, such as writing down shapes, counts as time
of the layer: a few microseconds, of which a small network has many.  So the layers as
profiled take longer than the network takes without the profiler, by more in one runtime
than in another, and two runtimes' layers compare only without that cost.

Rows store what was profiled; it is corrected where rows are read.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dlas.sweep.rows.labels import factor, milliseconds
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Layer

LARGEST_COST = 0.9
"""Largest part of the shortest layer's time that may be the profiler's: no layer takes no time."""


@dataclass(frozen=True)
class ProfiledLayers:
    """The times of a network's layers, as profiled and corrected.

    If the layers together take longer than the network, the same cost is taken from
    each of them, at most :data:`LARGEST_COST` of what the shortest takes, and what is left is
    scaled so that they add up to the network's latency.  If they do not, they stay as they
    are: what is missing passes between layers, or in operators that the profiler does not see.
    """

    seconds: tuple[float | None, ...]
    """Each layer of the row, corrected, in training its forward pass; None where it was not timed."""
    profiled_s: float
    """Sum of the layers as profiled, in training forward and backward."""
    latency_s: float
    """The network's latency without the profiler, the median of its samples."""
    cost_s: float
    """What was taken from each layer."""
    scale: float
    """What the rest was multiplied by, at most 1."""

    @property
    def total_s(self) -> float:
        """Sum of the corrected times, in seconds."""
        return sum(time for time in self.seconds if time)

    @property
    def correction(self) -> str:
        """What was done to the times, as a sentence without its end."""
        if self.cost_s == 0 and self.scale == 1:
            return "as profiled, nothing is corrected"
        taken = f"{self.cost_s * 1e6:.3g} µs of the profiler's own are taken from each layer"
        return taken + (f", and the rest is multiplied by {factor(self.scale)}" if self.scale < 1 else "")


def profile(row: Row) -> ProfiledLayers | None:
    """Return the times of a row's layers; None if no layer was timed."""
    times = [_seconds(layer, "latency_s") for layer in row.layers]
    timed = [time for time in times if time is not None]
    if not timed:
        return None
    backward = sum(_seconds(layer, "backward_s") or 0.0 for layer in row.layers)
    together = sum(timed) + backward
    latency_s = statistics.median(row.latency_s) if row.latency_s else together
    excess = max(0.0, together - latency_s)
    # In training, layers that are not timed backward would have to bear what others cost there.
    cost_s = 0.0 if backward else min(excess / len(timed), LARGEST_COST * min(timed))
    rest = together - len(timed) * cost_s
    scale = min(1.0, latency_s / rest) if excess else 1.0
    seconds = tuple(None if time is None else scale * (time - cost_s) for time in times)
    return ProfiledLayers(seconds, together, latency_s, cost_s, scale)


def timed_layers(row: Row) -> Iterator[tuple[Layer, float]]:
    """Yield the layers that were timed with their corrected times, in seconds; their backward pass, too."""
    profiled = profile(row)
    for layer, time_s in zip(row.layers, profiled.seconds if profiled else (), strict=False):
        if profiled and time_s is not None:
            backward_s = _seconds(layer, "backward_s")
            if backward_s is not None:
                layer = {**layer, "backward_s": profiled.scale * backward_s}
            yield layer, time_s


def compared_sums(profiled_s: float, latency_s: float) -> str:
    """Return the sum of layers as profiled beside the network's latency, in words."""
    return (
        f"its layers add up to {milliseconds(profiled_s)} ms as profiled, "
        f"and the network takes {milliseconds(latency_s)} ms"
    )


def _seconds(layer: Layer, name: Literal["latency_s", "backward_s"]) -> float | None:
    """Return a time of a layer as profiled, None where there is none."""
    time_s = layer.get(name)
    return float(time_s) if isinstance(time_s, int | float) and time_s >= 0 else None
