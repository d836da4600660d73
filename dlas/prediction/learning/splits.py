"""Splits by group: which rows a predictor is fitted on, and which it is tried on.

A random split would put rows of one network on both sides and tell how well a predictor
remembers.  Here whole groups are held out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.errors import InputError, unknown

SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")
PARTS = re.compile(r"(.+?) */ *(\d+)")
DEVICE = "device"
"""Criterion whose values are devices: a machine, its instance, a runtime with its algorithm, and threads."""
OF_SETTING = {
    "machine": ("machine_id", "instance"),
    "machine_id": ("machine_id", "instance"),
    "instance": ("instance",),
    "threads": ("threads",),
    "compiler": ("compiler", "algorithm"),
    "algorithm": ("algorithm",),
    DEVICE: ("machine_id", "instance", "compiler", "algorithm", "threads"),
}
"""Criteria by which rows of several settings are held out together, and the columns in which those differ."""
NETWORK_AXES = ("dataset", "model", "compression", "network")
"""Axes that make a network: held out by one of these, no network may be on both sides."""


@dataclass(frozen=True)
class Criterion:
    """What ``hold_out`` names: a column, and which of its values are held out."""

    column: str
    """Of the table of rows: ``model``, ``compression.level``, ``batch``; or ``network``, the operators that a
    point's network consists of; or ``device``.
    """
    named: tuple[str, ...] = ()
    """The values held out together; empty for each value in turn."""
    share: float | None = None
    """The share of the values, drawn from the seed, held out together."""
    parts: int | None = None
    """Into how many parts the values are drawn, each of which is held out in turn: where there are hundreds,
    a fit without each of them would take long.
    """

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Return the criterion in ``column``, ``column=value,value``, ``column=30%`` or ``column/10``.

        Raises
        ------
        InputError
            If it is none of these.
        """
        column, equals, values = (part.strip() for part in text.partition("="))
        named = tuple(value.strip() for value in values.split(",") if value.strip())
        if not column or (equals and not named):
            raise InputError(
                f"`hold_out={text!r}`: expected a column, column=value,value, column=30% or column/10, "
                "such as model, model=resnet50,googlenet, compression.level=30% or network/10"
            )
        if not equals and (in_parts := PARTS.fullmatch(column)):
            if int(in_parts[2]) < 2:
                raise InputError(f"`hold_out={text!r}`: expected two parts or more")
            return cls(in_parts[1], parts=int(in_parts[2]))
        if not (share := SHARE.fullmatch(values)):
            return cls(column, named)
        percent = float(share[1])
        if not 0 < percent < 100:
            raise InputError(f"`hold_out={text!r}`: expected a share between 0 % and 100 %")
        return cls(column, share=percent / 100)

    def in_turn(self) -> Criterion:
        """Return the criterion that holds out each value in turn."""
        return Criterion(self.column)

    def __str__(self) -> str:
        if self.parts is not None:
            return f"{self.column}/{self.parts}"
        values = f"{self.share:.0%}" if self.share is not None else ",".join(self.named)
        return f"{self.column}={values}" if values else self.column

    @property
    def of_alike(self) -> bool:
        """Whether its values are devices alike, so that one predictor is for all of them, and for others."""
        return self.column == "instance"

    @property
    def one_by_one(self) -> bool:
        """Whether each value is held out in turn, not several together."""
        return not self.named and self.share is None and self.parts is None

    @property
    def of_settings(self) -> tuple[str, ...]:
        """Columns of settings that it holds out: one predictor is fitted to rows that differ in these."""
        return OF_SETTING.get(self.column, ())

    @property
    def makes_networks(self) -> bool:
        """Whether its values make different networks, none of which may be on both sides."""
        return self.column.partition(".")[0].removesuffix("_name") in NETWORK_AXES


@dataclass(frozen=True)
class Fold:
    """Places of the rows that a predictor is fitted on, and of those that it is tried on."""

    name: str
    fitted: npt.NDArray[np.int_]
    tried: npt.NDArray[np.int_]


def folds(criterion: Criterion, groups: Sequence[str], seed: int = 0) -> Iterator[Fold]:
    """Yield the folds of a criterion.

    Parameters
    ----------
    groups : sequence of str
        The value of the criterion's column in each row.
    seed : int
        Chooses the values of a share, or of each part.

    Raises
    ------
    InputError
        If no row has a value that is named, or all rows are on one side.
    """
    values = sorted(set(groups), key=_order)
    if len(values) < 2:
        raise InputError(
            f"`hold_out={criterion.column!r}`: all rows have the value {values[0]!r}, so none can be held out"
        )
    for name, held in _held_out(criterion, values, seed):
        away = np.array([group in held for group in groups])
        if away.all():
            raise InputError(f"`hold_out={criterion.column!r}`: nothing is left to fit on")
        yield Fold(name, np.flatnonzero(~away), np.flatnonzero(away))


def check_leaks(fold: Fold, ids: Sequence[str], networks: Sequence[str]) -> None:
    """Refuse a fold that has one network on both sides, as pruning to two levels may give.

    Parameters
    ----------
    ids, networks : sequence of str
        Of each row: its id, and a digest of its network.

    Raises
    ------
    InputError
        It names two rows with the same network.
    """
    fitted = {networks[place]: place for place in fold.fitted}
    for place in fold.tried:
        if (other := fitted.get(networks[place])) is not None:
            raise InputError(
                f"rows {ids[other]} and {ids[place]} have the same network, and {fold.name} would hold out "
                "one of them alone; `hold_out='network'` holds out whole networks"
            )


def _held_out(criterion: Criterion, values: Sequence[str], seed: int) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the name and the values of each set that is held out."""
    if criterion.share is not None:
        count = min(max(1, round(criterion.share * len(values))), len(values) - 1)
        drawn = np.random.default_rng(seed).permutation(len(values))[:count]
        yield str(criterion), frozenset(values[place] for place in drawn)
    elif criterion.parts is not None:
        count = min(criterion.parts, len(values))
        part = np.random.default_rng(seed).permutation(len(values)) % count
        for place in range(count):
            name = f"{criterion.column}: part {place + 1} of {count}"
            yield name, frozenset(itertools.compress(values, part == place))
    elif criterion.named:
        for name in criterion.named:
            if name not in values:
                raise unknown(f"value of {criterion.column} in `hold_out=`", name, values)
        yield str(criterion), frozenset(criterion.named)
    else:
        for value in values:
            yield f"{criterion.column}={value}", frozenset((value,))


def _order(value: str) -> tuple[bool, float, str]:
    """Return the key that sorts numbers by value, before other words."""
    try:
        return False, float(value), value
    except ValueError:
        return True, 0.0, value
