"""What a study lists on an axis: entries, each of which stands for some values, crossed or drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dlas.errors import InputError
from dlas.study import parts
from dlas.study.point import Choice, chained

DRAWN = "drawn"
"""The value of an option that is left to its part to draw."""


class Entry(Protocol):
    """One entry of an axis."""

    @property
    def size(self) -> int:
        """The number of its values, if none has an option to be drawn."""

    @property
    def open(self) -> str | None:
        """The first option that is to be drawn, in words; None without any."""

    def __iter__(self) -> Iterator[Any]:
        """Yield its values, if none has an option to be drawn."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Return one of its values at random."""


@dataclass(frozen=True)
class Given:
    """A plain value, such as a batch size."""

    value: Any
    size = 1
    open = None

    def __iter__(self) -> Iterator[Any]:
        """Yield the value."""
        yield self.value

    def draw(self, rng: np.random.Generator) -> Any:
        """Return the value."""
        return self.value


@dataclass(frozen=True)
class Listed:
    """A part, with the values to try of each option.

    Parameters
    ----------
    axis, name : str
    options : tuple of (str, tuple)
        By option its values; :data:`DRAWN` for those that the part draws.
    """

    axis: str
    name: str
    options: tuple[tuple[str, tuple[Any, ...]], ...]

    @classmethod
    def checked(cls, axis: str, name: str, options: Mapping[str, tuple[Any, ...]]) -> Listed:
        """Return the entry if the part takes each value of each option, and draws what is to be drawn.

        Raises
        ------
        InputError
        """
        open_to = [option for option, values in options.items() if DRAWN in values]
        drawn = _drawn(axis, name, open_to, np.random.default_rng(0)) if open_to else {}
        usual = {option: next((v for v in values if v != DRAWN), DRAWN) for option, values in options.items()}
        usual |= drawn
        Choice.checked(axis, name, usual)
        for option, values in options.items():
            for value in values:
                if value != DRAWN:
                    Choice.checked(axis, name, {**usual, option: value})
        return cls(axis, name, tuple(options.items()))

    @property
    def size(self) -> int:
        """The number of combinations of its options' values."""
        return math.prod(len(values) for _, values in self.options)

    @property
    def open(self) -> str | None:
        """The first option that is to be drawn, in words."""
        option = next((option for option, values in self.options if DRAWN in values), None)
        return option and f'{self.axis} {self.name!r}: {option} = "{DRAWN}"'

    def __iter__(self) -> Iterator[Choice]:
        """Yield the part with each combination of its options' values."""
        names = [option for option, _ in self.options]
        for combination in itertools.product(*(values for _, values in self.options)):
            yield Choice.checked(self.axis, self.name, dict(zip(names, combination, strict=True)))

    def draw(self, rng: np.random.Generator) -> Choice:
        """Return the part with a value at random of each option, those of the part's own drawing last."""
        options = {option: values[rng.integers(len(values))] for option, values in self.options}
        left = [option for option, value in options.items() if value == DRAWN]
        if left:
            options |= _drawn(self.axis, self.name, left, rng)
        return Choice.checked(self.axis, self.name, options)


@dataclass(frozen=True)
class Chained:
    """Compression techniques in order."""

    links: tuple[Listed, ...]

    @property
    def size(self) -> int:
        """The number of combinations of its techniques."""
        return math.prod(link.size for link in self.links)

    @property
    def open(self) -> str | None:
        """The first option that is to be drawn, in words."""
        return next((link.open for link in self.links if link.open), None)

    def __iter__(self) -> Iterator[Choice]:
        """Yield each combination of its techniques."""
        yield from map(chained, itertools.product(*self.links))

    def draw(self, rng: np.random.Generator) -> Choice:
        """Return the chain, each technique at random."""
        return chained(tuple(link.draw(rng) for link in self.links))


@dataclass(frozen=True)
class Values:
    """The values that a study lists on an axis."""

    entries: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """The number of values, if none has an option to be drawn."""
        return sum(entry.size for entry in self.entries)

    @property
    def open(self) -> str | None:
        """The first option that is to be drawn, in words; None without any."""
        return next((entry.open for entry in self.entries if entry.open), None)

    def __iter__(self) -> Iterator[Any]:
        """Yield the values, if none has an option to be drawn."""
        for entry in self.entries:
            yield from entry

    def draw(self, rng: np.random.Generator) -> Any:
        """Return a value of an entry at random, each entry as likely as the others."""
        return self.entries[rng.integers(len(self.entries))].draw(rng)


def _drawn(axis: str, name: str, options: list[str], rng: np.random.Generator) -> dict[str, Any]:
    """Return what a part draws for some of its options.

    Raises
    ------
    InputError
        If it does not draw one of them.
    """
    drawn = parts.find(axis, name).cls.drawn(rng)
    for option in options:
        if option not in drawn:
            can = f"it draws: {', '.join(drawn)}" if drawn else "it draws no option"
            raise InputError(f"{axis} {name!r} cannot draw {option} = {DRAWN!r} ({can})")
    return {option: drawn[option] for option in options}
