"""What a study lists on an axis: entries, each of which stands for some values, crossed or drawn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dlas.errors import InputError
from dlas.stack import Part
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice, chained

DRAWN = "drawn"
"""The value of an option that is left to its part to draw."""


class AxisEntry(Protocol):
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

    def holds(self, value: Any) -> bool:
        """Return whether a value is of the same kind: a part of the same name whose options are valid."""


@dataclass(frozen=True)
class PlainEntry:
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

    def holds(self, value: Any) -> bool:
        """Return whether a value is this one."""
        return bool(value == self.value)


@dataclass(frozen=True)
class PartEntry:
    """A part, with the values to try of each option."""

    axis: str
    name: str
    options: tuple[tuple[str, tuple[Any, ...]], ...]
    """By option its values; :data:`DRAWN` for those that the part draws."""

    @classmethod
    def checked(cls, axis: str, name: str, options: Mapping[str, tuple[Any, ...]]) -> PartEntry:
        """Return the entry if the part takes each value of each option, and draws what is to be drawn.

        Raises
        ------
        InputError
        """
        open_to = [option for option, values in options.items() if DRAWN in values]
        usual = {option: next((v for v in values if v != DRAWN), DRAWN) for option, values in options.items()}
        if open_to:
            usual |= _drawn(axis, name, open_to, usual, np.random.default_rng(0))
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
            options |= _drawn(self.axis, self.name, left, options, rng)
        return Choice.checked(self.axis, self.name, options)

    def holds(self, value: Any) -> bool:
        """Return whether a value is the part, with options that it takes."""
        # Of another part not even the options are looked at: its name may be one that imports a file.
        if not isinstance(value, Choice) or value.chain or value.name != self.name:
            return False
        try:
            Choice.checked(self.axis, self.name, dict(value.options))
        except InputError:
            return False
        return True

    def mutated(self, value: Choice, rate: float, rng: np.random.Generator) -> Choice:
        """Return one of its values, each of whose choices is made anew with a probability."""
        given, drawn = self._apart(value)
        for option, values in self.options:
            if option in given and len(values) > 1 and rng.random() < rate:
                given[option] = values[rng.integers(len(values))]
        if drawn:
            drawn = dict(self._part.mutated(drawn, given, rate, rng))
        return self._made(given, drawn)

    def crossed(self, one: Choice, other: Choice, rng: np.random.Generator) -> Choice:
        """Return a value between two of its own."""
        (given, drawn), (others, others_drawn) = map(self._apart, (one, other))
        given = {option: (given, others)[int(rng.integers(2))][option] for option in given}
        if drawn:
            drawn = dict(self._part.crossed(drawn, others_drawn, given, rng))
        return self._made(given, drawn)

    @property
    def _part(self) -> type[Part]:
        found: type[Part] = parts.find(self.axis, self.name).cls
        return found

    def _apart(self, value: Choice) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a value has of the entry's options that are listed, and of those that are drawn.

        Of an option with one value the entry knows it: what says where to draw from is no part of a value.
        """
        own = {**parts.find(self.axis, self.name).options(), **dict(value.options)}
        given = {
            option: values[0] if len(values) == 1 else own[option]
            for option, values in self.options
            if DRAWN not in values
        }
        return given, {option: own[option] for option, values in self.options if DRAWN in values}

    def _made(self, given: Mapping[str, Any], drawn: Mapping[str, Any]) -> Choice:
        """Return the value with these options, those that only say where to draw from left out."""
        if not drawn:
            return Choice.checked(self.axis, self.name, given)
        replaced = self._part.drawn_with(given, np.random.default_rng(0))
        kept = {option: replaced.get(option, value) for option, value in given.items()}
        return Choice.checked(self.axis, self.name, {**kept, **drawn})


@dataclass(frozen=True)
class ChainEntry:
    """Compression techniques in order."""

    links: tuple[PartEntry, ...]

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

    def holds(self, value: Any) -> bool:
        """Return whether a value is a chain of the same techniques."""
        if not isinstance(value, Choice) or len(value.chain) != len(self.links):
            return False
        return all(link.holds(own) for link, own in zip(self.links, value.chain, strict=True))


@dataclass(frozen=True)
class Values:
    """The values that a study lists on an axis."""

    entries: tuple[AxisEntry, ...]

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

    def holds(self, value: Any) -> bool:
        """Return whether a value is of the kind that an entry holds."""
        return any(entry.holds(value) for entry in self.entries)

    def mutated(self, value: Any, rate: float, rng: np.random.Generator) -> Any:
        """Return a value that differs a little: each choice in it is made anew with a probability."""
        entry = self._only_part
        if entry is not None:
            return entry.mutated(value, rate, rng)
        return self.draw(rng) if rng.random() < rate else value

    def crossed(self, one: Any, other: Any, rng: np.random.Generator) -> Any:
        """Return a value between two."""
        entry = self._only_part
        return (one, other)[int(rng.integers(2))] if entry is None else entry.crossed(one, other, rng)

    @property
    def _only_part(self) -> PartEntry | None:
        """The entry, if it is the only one and a part with options."""
        entry = self.entries[0]
        return entry if len(self.entries) == 1 and isinstance(entry, PartEntry) and entry.options else None


def _drawn(
    axis: str, name: str, options: list[str], beside: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return what a part draws for some of its options, and what replaces those beside them.

    Raises
    ------
    InputError
        If it does not draw one of them.
    """
    given = {option: value for option, value in beside.items() if option not in options}
    drawn = parts.find(axis, name).cls.drawn_with(given, rng)
    for option in options:
        if option not in drawn:
            can = f"it draws: {', '.join(drawn)}" if drawn else "it draws no option"
            raise InputError(f"{axis} {name!r} cannot draw {option} = {DRAWN!r} ({can})")
    return {option: value for option, value in drawn.items() if option in options or option in given}
