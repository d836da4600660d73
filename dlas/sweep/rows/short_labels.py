"""Labels with only the options that vary; the options that all rows of a part share are told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from dlas.stack import PART_AXES
from dlas.sweep.rows.labels import listed

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Abbreviations:
    """What short labels leave out."""

    full: dict[str, dict[str, str]] = field(default_factory=dict)
    """By axis, the whole label of each short one."""
    shared: dict[str, list[str]] = field(default_factory=dict)
    """By what options say (``criterion=random, recipe=none``), the parts all of whose rows have them."""

    def __str__(self) -> str:
        """``block_pruning and weight_pruning with recipe=none; metaschedule with trials=8``, or nothing."""
        return "; ".join(f"{listed(names)} with {options}" for options, names in self.shared.items())


def with_short_labels(frame: pd.DataFrame) -> tuple[pd.DataFrame, Abbreviations]:
    """Return the rows with the shortest labels that tell the values of an axis apart.

    An axis with a single value keeps its whole label, which is then said once.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned, or some of its lines.
    """
    left_out = Abbreviations()
    columns = {}
    for axis in PART_AXES:
        values = frame.dropna(subset=[axis]).drop_duplicates(axis)
        parts = dict(zip(values[axis].astype(str), _parts(values, axis), strict=True))
        if len(parts) < 2:
            left_out.full[axis] = {label: label for label in parts}
            continue
        short = short_labels(parts)
        left_out.full[axis] = {called: label for label, called in short.items()}
        columns[axis] = frame[axis].map(short).astype("string")
        for name, agreed in _agreed(parts).items():
            if agreed:
                left_out.shared.setdefault(_told(agreed), []).append(name)
    return frame.assign(**columns), left_out


def short_labels(parts: Mapping[str, tuple[str, Options]]) -> dict[str, str]:
    """Return for each label one without the options in which all parts of a name agree.

    Parameters
    ----------
    parts : mapping of str to (str, mapping)
        By label, the part's name and options as :func:`dlas.sweep.rows.labels.options` gives them.
        A technique in a chain agrees with those of its name elsewhere, or does not.

    Returns
    -------
    dict of str to str
        No two are equal: where short labels would be, all stay whole.
    """
    agreed = _agreed(parts)
    short = {}
    for label, part in parts.items():
        links = []
        for name, options in _links(*part):
            told = _told({key: value for key, value in options.items() if key not in agreed[name]})
            links.append(f"{name}({told})" if told else name)
        short[label] = "+".join(links)
    return short if len(set(short.values())) == len(short) else {label: label for label in parts}


def _parts(values: pd.DataFrame, axis: str) -> Iterator[tuple[str, Options]]:
    """Yield the name and options of each line's part."""
    prefix = f"{axis}."
    columns = [str(name) for name in values if str(name).startswith(prefix)]
    for name, *options in zip(*(values[column] for column in (f"{axis}_name", *columns)), strict=True):
        given = zip(columns, options, strict=True)
        yield str(name), {column.removeprefix(prefix): value for column, value in given if pd.notna(value)}


def _links(name: str, options: Options) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name and options, as text, of each technique of a chain, or of a part that is none."""
    names, seen = name.split("+"), Counter[str]()
    for link in names:
        seen[link] += 1
        prefix = "" if len(names) == 1 else f"{link}." if seen[link] == 1 else f"{link}_{seen[link]}."
        own = {key.removeprefix(prefix): value for key, value in options.items() if key.startswith(prefix)}
        yield link, {key: _text(value) for key, value in own.items()}


def _agreed(parts: Mapping[str, tuple[str, Options]]) -> dict[str, dict[str, str]]:
    """Return the options that are equal in all parts and techniques of a name."""
    agreed: dict[str, dict[str, str]] = {}
    for part in parts.values():
        for name, own in _links(*part):
            known = agreed.setdefault(name, own)
            agreed[name] = {key: value for key, value in known.items() if own.get(key) == value}
    return agreed


def _told(options: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(options.items()))


def _text(value: Any) -> str:
    """Return a value as the study file gave it: a column of numbers makes 1 into 1.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
