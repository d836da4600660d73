"""Points that differ in options of their parts only, which matching by labels keeps apart.

``winograd(tile=2)`` untuned and ``winograd(tile=4)`` tuned are no match, nor are a setting on
``cifar_resnet18`` and one on ``cifar_resnet18(width=0.5)``.  Both are compared here by their
parts' names, each with its best options.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dlas.analysis.matching import SETTING, groups, identity, paired
from dlas.analysis.winners import Times, Winner
from dlas.stack import PART_AXES


@dataclass(frozen=True)
class OptionSettings:
    """Settings of the same parts, machine, batch size and seed."""

    options: dict[str, list[str]]
    """The axes on which they differ, with their values."""
    best: Winner
    """The fastest of all their points."""

    @property
    def differing(self) -> str:
        """The axes with their values, in words."""
        return "; ".join(f"{axis} {', '.join(values)}" for axis, values in self.options.items())


def by_part(columns: Sequence[str]) -> list[str]:
    """Return the columns with the name of a part in the place of its label with options."""
    return [f"{name}_name" if name in PART_AXES else name for name in columns]


def settings_by_part(points: pd.DataFrame) -> list[OptionSettings]:
    """Return the settings that differ in options only, those of the same parts together.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    """
    times, found = Times(points), []
    for lines in groups(points, by_part(SETTING)):
        inside = points.iloc[lines]
        options = {
            axis: [str(value) for value in inside[axis].dropna().unique()]
            for axis in SETTING
            if axis in PART_AXES and inside[axis].nunique() > 1
        }
        if options:
            found.append(OptionSettings(options, times.fastest(lines)))
    return found


def paired_by_part(points: pd.DataFrame, first: pd.Series, second: pd.Series, axis: str) -> pd.DataFrame:
    """Return pairs along an axis of points without an exact match, but with one by their parts' names.

    Parameters
    ----------
    first, second : Series of bool
        The points to pair.

    Returns
    -------
    DataFrame
        As :func:`dlas.analysis.matching.paired` returns it: of each part, the fastest options of both sides.
    """
    same = identity((axis,))
    exact = paired(points, first, second, same)
    keys = points.groupby(same, dropna=False).ngroup()
    alone = ~keys.isin(keys.loc[exact["first"]])
    return paired(points, first & alone, second & alone, by_part(same))
