"""Studies that draw: some points at random of a space that may be too large to cross."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlas.errors import InputError
from dlas.sweep.study.entries import Values

Draw = Mapping[str, Any]
"""A value for each drawn axis."""
MOST_LISTED = 100_000
"""A space of so many points is listed in full where random draws hardly find new ones."""
PATIENCE = 100
"""The fewest draws in a row that add no point before a space is listed or given up."""
MOST_PATIENCE = 2_000
"""The most such draws in a row."""


class TooFewDraws(InputError):
    """More points are to be drawn than there are.

    Parameters
    ----------
    message : str
    found : int
        Draws that there are, or that were found before no more were.
    """

    def __init__(self, message: str, found: int) -> None:
        super().__init__(message)
        self.found = found


@dataclass(frozen=True)
class Sample:
    """How many points to draw, and on which axes."""

    points: int
    """Draws, each of which is crossed with all values of the other axes."""
    axes: tuple[str, ...]


def check_drawable(axes: Mapping[str, Values], sample: Sample | None) -> None:
    """Refuse options that are to be drawn on an axis that is not.

    Raises
    ------
    InputError
    """
    for axis, values in axes.items():
        if values.open and sample is None:
            raise InputError(
                f"{values.open} needs a table [sample] that says how many points to draw (points = 100), "
                "or `sample=100`"
            )
        if values.open and sample and axis not in sample.axes:
            raise InputError(f"{values.open}, but [sample] axes = {list(sample.axes)} leaves out {axis!r}")


def draws(
    axes: Mapping[str, Values], sample: Sample, seed: int, crossed: int, adds: Callable[[Draw], bool]
) -> list[Draw]:
    """Return as many draws as the sample asks for, each of which adds a point.

    A draw depends on the seed and its number alone, so that more points extend a sample; and on each axis
    on nothing that the other axes list, so that studies with the same seed draw the same values there.

    Parameters
    ----------
    crossed : int
        Points of a draw.
    adds : callable
        Whether a draw gives a point that no earlier one gave and no rule skips.

    Raises
    ------
    TooFewDraws
        If there are fewer draws that add a point.
    """
    drawn = {axis: axes[axis] for axis in sample.axes}
    is_open = any(values.open for values in drawn.values())
    space = math.inf if is_open else math.prod(values.size for values in drawn.values())
    listable = space * crossed <= MOST_LISTED
    patience = max(PATIENCE, int(space) // 10 if listable else min(MOST_PATIENCE, MOST_LISTED // crossed))
    found: list[Draw] = []
    tried: set[tuple[Any, ...]] = set()

    def take(candidates: Iterable[Draw], patience: float) -> None:
        fruitless = 0
        for draw in candidates:
            if len(found) == sample.points or fruitless == patience:
                return
            values = tuple(draw.values())
            new = values not in tried and adds(draw)
            tried.add(values)
            found.extend([draw] * new)
            fruitless = 0 if new else fruitless + 1

    if space >= sample.points:
        take(_drawn(drawn, seed), patience)
    if listable and len(found) < sample.points:
        take(_shuffled(drawn, seed), math.inf)
    if len(found) < sample.points:
        varying = [axis for axis, values in drawn.items() if values.open or values.size > 1]
        named = ", ".join(varying or drawn)
        told = _too_many(sample, named, space, len(found) if listable else None, patience)
        raise TooFewDraws(told, len(found))
    return found


def _drawn(axes: Mapping[str, Values], seed: int) -> Iterable[Draw]:
    """Yield draws without end; the axis's name is in its seed, so that a new axis changes no draw."""
    only = {axis: next(iter(values)) for axis, values in axes.items() if values.size == 1 and not values.open}
    for number in itertools.count():
        yield {
            axis: only[axis] if axis in only else values.draw(_generator(seed, number, axis))
            for axis, values in axes.items()
        }


def _generator(seed: int, number: int, axis: str) -> np.random.Generator:
    return np.random.default_rng((seed, number, *axis.encode()))


def _shuffled(axes: Mapping[str, Values], seed: int) -> Iterable[Draw]:
    """Yield every draw of a small space, in random order."""
    listed = list(itertools.product(*axes.values()))
    for place in np.random.default_rng(seed).permutation(len(listed)):
        yield dict(zip(axes, listed[place], strict=True))


def _too_many(sample: Sample, axes: str, space: float, exact: int | None, patience: int) -> str:
    """Return the message for more points than there are."""
    asked = f"[sample] points = {sample.points:,}: more points than there are"
    if exact is not None:
        return f"{asked}: {axes} give {exact:,} different draws that no rule skips"
    if space < sample.points:
        return f"{asked}: {axes} give {int(space):,} different draws"
    return f"{asked}: {patience:,} draws of {axes} in a row gave none that is new and that no rule skips"
