"""Families of features: pure functions of a network's operators at a batch size, or of a point's options.

A column is called ``family.name``.  Every column of operators is an affine function of the batch size, or the
largest of some, so that a network's columns at any batch size follow from those at two.  That makes
predictions of many batch sizes as cheap as of two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dlas.networks.operators import Operators
from dlas.prediction.learning.features import subnets
from dlas.prediction.learning.features.costs import costs, costs_by_class
from dlas.prediction.learning.features.memory_costs import memory_costs
from dlas.prediction.learning.features.subnets import Options, SubnetOptions
from dlas.prediction.learning.features.totals import totals
from dlas.prediction.learning.features.training_cost import training_cost
from dlas.stack import Operator
from dlas.stack.types import Floats

Family = Callable[[Sequence[Operator]], Mapping[str, float | Floats]]
"""Returns columns by name; of an array the largest number counts, each an affine function of the batch."""
OF_OPTIONS = subnets.FAMILIES
"""Families of options alone."""
OWN = "feature"
"""The family of what a table from elsewhere tells of its points: its columns are those of the table."""
FAMILIES: dict[str, Family] = {
    "costs": costs,
    "costs_by_class": costs_by_class,
    "memory_costs": memory_costs,
    "totals": totals,
    "training_cost": training_cost,
}


@functools.cache
def columns(families: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns of some families, each in :data:`FAMILIES` or :data:`OF_OPTIONS`."""
    return tuple(f"{family}.{name}" for family in families for name in _names(family))


def of_operators(families: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some families that are functions of operators, not of a point's options."""
    return tuple(family for family in families if family not in OF_OPTIONS and family != OWN)


def _names(family: str) -> Sequence[str]:
    return OF_OPTIONS[family].names if family in OF_OPTIONS else tuple(FAMILIES[family](()))


def matrix(
    families: tuple[str, ...],
    networks: Sequence[Operators],
    batches: Sequence[int],
    options: Options | None = None,
) -> Floats:
    """Return the features of points.

    Parameters
    ----------
    networks : sequence of Operators, length n
        The operators of each point's network, at the point's batch size or at two others.
    batches : sequence of int, length n
        The batch size of each point.
    options : callable, optional
        The options of the points, for families that read these.

    Returns
    -------
    array [n, columns]
    """
    read = of_operators(families)
    if read != families or not read:
        known = _by_family(read, matrix(read, networks, batches)) if read else []
        of_family = dict(zip(read, known, strict=True))
        told = SubnetOptions(options or _unknown)
        blocks = [
            of_family[name] if name in of_family else OF_OPTIONS[name].values(told) for name in families
        ]
        return blocks[0] if len(blocks) == 1 else np.hstack([np.empty((len(networks), 0)), *blocks])
    found = np.empty((len(networks), len(columns(families))))
    places: dict[int, list[int]] = {}
    for place, operators in enumerate(networks):
        places.setdefault(id(operators), []).append(place)
    sizes = np.asarray(batches, dtype=np.float64)
    for own in places.values():
        found[own] = _of_network(families, networks[own[0]], sizes[own])
    return found


def _unknown(column: str) -> Sequence[Any]:
    """Return that nothing is known of a point."""
    raise KeyError(column)


def _by_family(families: Sequence[str], found: Floats) -> list[Floats]:
    """Return the columns of each family."""
    ends = np.cumsum([len(_names(family)) for family in families])
    return np.split(found, ends[:-1], axis=1)


def _of_network(families: Sequence[str], operators: Operators, batches: Floats) -> Floats:
    """Return the features of one network at some batch sizes."""
    first, *others = operators if len(operators) == 1 else set(batches.tolist())
    if first in operators and not others:
        layers = operators[int(first)]
        return np.tile([np.max(value) for value in _values(families, layers)], (len(batches), 1))
    *_, before, last = sorted(operators)
    steps = (batches - last) / (last - before)
    pairs = zip(_values(families, operators[before]), _values(families, operators[last]), strict=True)
    return np.column_stack([_extended(first, second, steps) for first, second in pairs])


def _extended(first: float | Floats, second: float | Floats, steps: Floats) -> Floats:
    """Return a column some steps beyond the second of two batch sizes."""
    if isinstance(first, float) and isinstance(second, float):
        return second + steps * (second - first)
    growth = np.subtract(second, first)
    return np.asarray((np.asarray(second) + steps[:, None] * growth).max(axis=1))


def _values(families: Sequence[str], layers: Sequence[Operator]) -> list[float | Floats]:
    """Return the columns of one network at the batch size of its layers."""
    return [value for family in families for value in FAMILIES[family](layers).values()]
