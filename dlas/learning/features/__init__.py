"""Families of features: pure functions of a network's operators at a batch size.

A column is called ``family.name``.  Every column is an affine function of the batch size, so that a
network's columns at any batch size follow from those at two.  That makes predictions of many batch
sizes as cheap as of two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dlas.learning.features.costs import costs, memory_costs
from dlas.learning.features.totals import totals
from dlas.learning.features.training_cost import training_cost
from dlas.networks.operators import Operators
from dlas.stack import Layer

Array = npt.NDArray[np.float64]
Family = Callable[[Sequence[Layer]], Mapping[str, float]]
FAMILIES: dict[str, Family] = {
    "costs": costs,
    "memory_costs": memory_costs,
    "totals": totals,
    "training_cost": training_cost,
}


def columns(families: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of some families, each a name in :data:`FAMILIES`."""
    return tuple(f"{family}.{name}" for family in families for name in FAMILIES[family](()))


def matrix(families: Sequence[str], networks: Sequence[Operators], batches: Sequence[int]) -> Array:
    """Return the features of points.

    Parameters
    ----------
    families : sequence of str
    networks : sequence of Operators, length n
        The operators of each point's network, at the point's batch size or at two others.
    batches : sequence of int, length n
        The batch size of each point.

    Returns
    -------
    array [n, columns]
    """
    found = np.empty((len(networks), len(columns(families))))
    places: dict[int, list[int]] = {}
    for place, operators in enumerate(networks):
        places.setdefault(id(operators), []).append(place)
    sizes = np.asarray(batches, dtype=np.float64)
    for own in places.values():
        found[own] = _of_network(families, networks[own[0]], sizes[own])
    return found


def _of_network(families: Sequence[str], operators: Operators, batches: Array) -> Array:
    """Return the features of one network at some batch sizes."""
    if len(operators) == 1:
        ((_, layers),) = operators.items()
        return np.tile(_row(families, layers), (len(batches), 1))
    *_, before, last = sorted(operators)
    first, second = _row(families, operators[before]), _row(families, operators[last])
    growth = (second - first) / (last - before)
    return np.asarray(second + (batches[:, None] - last) * growth)


def _row(families: Sequence[str], layers: Sequence[Layer]) -> Array:
    """Return the features of one network at the batch size of its layers."""
    return np.array([value for family in families for value in FAMILIES[family](layers).values()])
