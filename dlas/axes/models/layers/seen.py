"""What layers of real networks read and write: combinations of sizes, and the ranges that cover them.

``seen.json`` holds the combinations; ``python -m dlas.axes.models.layers.survey`` writes it.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FILE = "seen.json"
GAP = 2.0
"""Sizes of which one is more than this many times the one before it are in different ranges."""
MARGIN = 1.1
"""How far ranges reach beyond what was seen, at either end: e and e' of the paper."""


@dataclass(frozen=True, order=True)
class Combination:
    """A convolution of a real network."""

    c: int
    """Channels and filters."""
    k: int
    """Channels and filters."""
    r: int
    """Height and width of the kernel."""
    s: int
    """Height and width of the kernel."""
    stride: int
    dilation: int
    groups: int
    side: int
    """Height of the map that it reads."""

    @property
    def kind(self) -> str:
        """What kind of kernel it is: ``pointwise``, ``spatial``, ``depthwise`` or ``grouped``."""
        if self.groups > 1:
            return "depthwise" if self.groups == self.c == self.k else "grouped"
        return "pointwise" if self.r == self.s == 1 else "spatial"


@dataclass(frozen=True)
class Ranges:
    """Ranges of a size; outliers are ranges of their own."""

    bounds: tuple[tuple[int, int], ...]
    """First and last value of each."""
    counts: tuple[int, ...]
    """How many values were seen in each."""

    @classmethod
    def of(cls, values: Iterable[int]) -> Ranges:
        """Return the ranges that cover values, each a little wider than those are."""
        found = Counter(values)
        ordered = sorted(found)
        starts = [after for before, after in itertools.pairwise(ordered) if after > GAP * before]
        first = [0, *(ordered.index(start) for start in starts), len(ordered)]
        parts = [ordered[begin:end] for begin, end in itertools.pairwise(first)]
        bounds = tuple((math.ceil(part[0] / MARGIN), math.floor(part[-1] * MARGIN)) for part in parts)
        return cls(bounds, tuple(sum(found[value] for value in part) for part in parts))

    def draw(self, dice: random.Random, most: int) -> int:
        """Return a size in one of the ranges, at most ``most`` or else the least of all.

        A range is as likely as what was seen in it, and a size as likely as its half and its double.
        """
        fits = sum(low <= most for low, _ in self.bounds)
        if not fits:
            return most
        ((low, high),) = dice.choices(self.bounds[:fits], self.counts[:fits])
        return round(math.exp(dice.uniform(math.log(low), math.log(min(high, most)))))


@dataclass(frozen=True)
class LayerSurvey:
    """What was found in some networks."""

    networks: tuple[str, ...]
    combinations: tuple[Combination, ...]
    """Each once, however often it is."""
    linear: tuple[tuple[int, int], ...]
    """Inputs and outputs of linear layers."""
    pools: tuple[tuple[str, int, int], ...]
    """``max`` or ``avg``, window and stride."""
    activations: dict[str, int]
    """How many networks have each."""

    @functools.cached_property
    def features(self) -> Ranges:
        """Ranges of what linear layers write."""
        return Ranges.of(outputs for _, outputs in self.linear)

    @functools.cached_property
    def filters(self) -> dict[str, Ranges]:
        """Ranges of filters, by kind of kernel."""
        return {kind: Ranges.of(each.k for each in own) for kind, own in self.by_kind.items()}

    @functools.cached_property
    def by_kind(self) -> dict[str, tuple[Combination, ...]]:
        """The combinations of each kind of kernel."""
        kinds = sorted({each.kind for each in self.combinations})
        return {kind: tuple(each for each in self.combinations if each.kind == kind) for kind in kinds}

    @functools.cached_property
    def reading(self) -> dict[int, tuple[Combination, ...]]:
        """The combinations by the channels that they read."""
        numbers = sorted({each.c for each in self.combinations})
        return {c: tuple(each for each in self.combinations if each.c == c) for c in numbers}


def text(seen: LayerSurvey) -> str:
    """Return what was found as JSON, a combination a line."""
    fields = Combination.__dataclass_fields__
    rows = [json.dumps([getattr(each, name) for name in fields]) for each in seen.combinations]
    content = {
        "networks": seen.networks,
        "fields": [*fields],
        "linear": seen.linear,
        "pools": seen.pools,
        "activations": seen.activations,
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in content.items()]
    listed = '"combinations": [\n' + ",\n".join(rows) + "\n]"
    return "{\n" + ",\n".join([*lines, listed]) + "\n}\n"


def parse(content: str) -> LayerSurvey:
    """Return what :func:`text` wrote."""
    told = json.loads(content)
    rows = (dict(zip(told["fields"], row, strict=True)) for row in told["combinations"])
    return LayerSurvey(
        tuple(told["networks"]),
        tuple(Combination(**row) for row in rows),
        tuple((inputs, outputs) for inputs, outputs in told["linear"]),
        tuple((kind, size, stride) for kind, size, stride in told["pools"]),
        told["activations"],
    )


@functools.cache
def real_layers() -> LayerSurvey:
    """Return what is in ``seen.json``."""
    return parse(Path(__file__).with_name(FILE).read_text(encoding="utf-8"))
