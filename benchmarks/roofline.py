"""Roofline bounds of a convolution: multiply-adds, loads of their inputs, streamed bytes, by type.

Each bound is the work that every such kernel must do, over a rate measured on this machine.
The slowest bound is the roof; a kernel may have other costs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.dot_peak import measure_dot_peaks
from benchmarks.peak import measure_peak, run_alone, tile, time_sums
from dlas.prediction.learning.features.kernels import BITS
from dlas.sweep.rows.schema import Layer

SIZES = tuple(2**power for power in range(14, 27, 2))
"""Bytes a thread that a probe walks through: from a first-level cache to memory."""
NUMBERS = 2**23
"""Fewest numbers read in a sample."""
OFFSET_BYTES = VALUE_BYTES = 4
WIDE = "float32"
"""The type of what rows do not tell."""


@dataclass(frozen=True)
class Roof:
    """Rates of a machine on some threads."""

    flops: float
    """Operations a second of multiply-adds in registers."""
    aligned: dict[int, float]
    """Numbers a second that multiply-adds read from memory, a vector each, by the bytes walked through."""
    shifted: float
    """As many from a first-level cache, where each vector lies across two lines."""
    threads: int
    dots: Mapping[str, float] = field(default_factory=dict)
    """Operations a second of dot products in registers, by the type of weights that has such."""

    def limits(self, layer: Layer, height: int, shifted: bool) -> dict[str, float]:
        """Return the least seconds that a layer takes, by what limits it.

        Parameters
        ----------
        layer : mapping
            A layer of a row, with its nonzeros.
        height : int
            Filters that share a weight's place, and so a vector of input; 0 for dense code, which keeps
            inputs in registers and multiplies by zeros.
        shifted : bool
            Whether vectors of input begin anywhere.
        """
        kinds: Mapping[str, Any] = layer.get("types", {})
        read, weight, written = (
            BITS.get(kinds.get(of, WIDE), 32) / 8 for of in ("input", "weight", "output")
        )
        dense = layer["k"] * (layer["c"] // layer["groups"]) * layer["r"] * layer["s"]
        stored = layer["nonzeros"] if height else dense
        products = stored * layer["n"] * layer["p"] * layer["q"]
        weights = stored * (weight + (OFFSET_BYTES / height if height else 0))
        rows = layer["h"] * min(1, layer["r"] / layer["strides"][0])  # a stride may pass over whole rows
        images = layer["n"] * (
            layer["c"] * rows * layer["w"] * read + layer["k"] * layer["p"] * layer["q"] * written
        )
        # A vector of narrower inputs hardly ever lies across two lines.
        near = self.shifted if shifted and read == VALUE_BYTES else self.aligned[SIZES[0]]
        rate = self.dots.get(kinds.get("weight", WIDE), self.flops)
        return {
            "FMAs": 2 * products / rate,
            "loads": products / height / near if height else 0.0,
            "weights": self._stream(weights),
            "images": self._stream(images),
        }

    def _stream(self, size: float) -> float:
        """Return the seconds that reading ``size`` bytes takes, each thread its share."""
        measured = next((probe for probe in SIZES if probe * self.threads >= size), SIZES[-1])
        return size / VALUE_BYTES / self.aligned[measured]


def measure_roof(threads: int) -> Roof:
    """Return the rates of this machine, measured in processes of their own."""
    shifted, *aligned = json.loads(run_alone("benchmarks.roofline", threads))
    near = dict(zip(SIZES, aligned, strict=True))
    return Roof(measure_peak(threads), near, shifted, threads, measure_dot_peaks(threads))


def _measure_here(threads: int) -> list[float]:
    from dlas.bench.measuring.machine import use_threads

    use_threads(threads)
    first = _rate(threads, SIZES[0], shift=1)
    return [first, *(_rate(threads, size, shift=0) for size in SIZES)]


def _rate(threads: int, size: int, shift: int) -> float:
    """Return the numbers a second that multiply-adds read, all threads together.

    Each thread walks again and again through ``size`` bytes of its own; like a sparse
    kernel, with one factor for as many vectors as it has sums in registers.
    """
    from tvm import te

    vectors, lanes = tile()
    terms = size // (4 * vectors * lanes)
    share = terms * vectors * lanes
    rounds = -(-NUMBERS // share)
    x = te.placeholder((threads * share + lanes,), "float32", "x")
    scale = te.placeholder((rounds,), "float32", "scale")

    def product(thread: Any, vector: Any, lane: Any, again: Any, term: Any) -> Any:
        place = thread * share + (term * vectors + vector) * lanes + lane + shift
        return x[place] * scale[again]

    return threads * share * rounds / time_sums(threads, (rounds, terms), (x, scale), product)


if __name__ == "__main__":
    print(json.dumps(_measure_here(int(sys.argv[1]))))
