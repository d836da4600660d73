"""Variable elimination: the cheapest values of many variables, where each cost depends on few of them.

Variables are eliminated one after the other: for all values of those that share a cost
with it, the best value of the variable is stored, and the minimum becomes a cost of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.stack.types import Floats

MOST = 2**20
"""Most entries of a table."""


@dataclass(frozen=True)
class CostFactor:
    """A cost that depends on some variables."""

    variables: tuple[str, ...]
    table: Floats
    """The cost for all values, one dimension a variable."""

    def at(self, chosen: Mapping[str, int]) -> float:
        """Return the cost of chosen values."""
        return float(self.table[tuple(chosen[variable] for variable in self.variables)])


def total(costs: Iterable[CostFactor], chosen: Mapping[str, int]) -> float:
    """Return the total cost of chosen values."""
    return sum(cost.at(chosen) for cost in costs)


def cheapest(costs: Sequence[CostFactor], most: int = MOST) -> dict[str, int] | None:
    """Return the values of smallest total cost; None if that needs a table of more than ``most`` entries."""
    waiting, decided = list(costs), []
    extents = {v: n for cost in costs for v, n in zip(cost.variables, cost.table.shape, strict=True)}
    scopes = {v: {v} for v in extents}
    for cost in costs:
        for variable in cost.variables:
            scopes[variable] |= set(cost.variables)
    while scopes:
        variable = min(scopes, key=lambda v: math.prod(extents[name] for name in scopes[v]))
        others = tuple(sorted(scopes.pop(variable) - {variable}))
        if math.prod(extents[name] for name in (variable, *others)) > most:
            return None
        own = [cost for cost in waiting if variable in cost.variables]
        joint = _joint(own, (variable, *others), extents)
        waiting = [cost for cost in waiting if variable not in cost.variables]
        waiting.append(CostFactor(others, joint.min(axis=0)))
        decided.append((variable, others, joint.argmin(axis=0)))
        for name in others:
            scopes[name] = (scopes[name] | set(others)) - {variable}
    chosen: dict[str, int] = {}
    for variable, others, best in reversed(decided):
        chosen[variable] = int(best[tuple(chosen[name] for name in others)])
    return chosen


def _joint(
    costs: Sequence[CostFactor], scope: tuple[str, ...], extents: Mapping[str, int]
) -> npt.NDArray[Any]:
    """Return the sum of costs as one table over all their variables."""
    table = np.zeros([extents[variable] for variable in scope])
    for cost in costs:
        places = [scope.index(variable) for variable in cost.variables]
        shape = [extents[variable] if variable in cost.variables else 1 for variable in scope]
        table += cost.table.transpose(np.argsort(places)).reshape(shape)
    return table


def descend(costs: Sequence[CostFactor], start: Mapping[str, int]) -> dict[str, int]:
    """Return a local optimum from ``start``: no change of a single variable makes it cheaper."""
    chosen, settled = dict(start), False
    while not settled:
        settled = True
        for variable in chosen:
            own = [cost for cost in costs if variable in cost.variables]
            values = own[0].table.shape[own[0].variables.index(variable)]
            now = total(own, chosen)
            best = min(range(values), key=lambda value: total(own, {**chosen, variable: value}))
            if total(own, {**chosen, variable: best}) < now:
                chosen[variable], settled = best, False
    return chosen
