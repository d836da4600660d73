"""A sum of analytic costs, each with a non-negative rate: a few rows are enough, and it extrapolates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from dlas.prediction.predictors.fitted.least_squares import relative_rates, robust_rates
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace

OF_STAGE = re.compile(r"subnet_costs\.stage\d_(\w+)")
"""Columns of the costs of a stage."""


@dataclass(frozen=True)
class Additive(Predictor):
    """Sum multiply-adds, values, weights and operators, or what memory holds, each times a rate.

    Costs of a device are never negative, so neither are their rates: with few rows this keeps costs that
    occur together from cancelling each other.  Networks differ by orders of magnitude, so that their relative
    errors count.  Subnetworks do not: Huber's loss of their errors counts, by which few disturbed rows do not
    decide.
    """

    costs: Literal["network", "stage", "own"] = "network"
    """Of whole networks; of each stage of subnetworks of ``ofa_mobilenet_v3``; or ``own``, the columns
    ``feature.<name>`` of a table from elsewhere.
    """

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that make up the target."""
        if self.costs == "stage":
            if target.endswith("_bytes"):
                raise InputError(f"additive(costs='stage') predicts times, not {target}")
            return ("subnet_costs",)
        if self.costs == "own":
            return ("feature",)
        return ("memory_costs",) if target.endswith("_bytes") else ("costs",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the rates that err least; those of neighbouring stages are alike.

        Raises
        ------
        InputError
            If a feature is negative.
        """
        check_costs(samples)
        if self.costs == "stage":
            rates = robust_rates(samples.features, samples.target, _neighbours(samples.columns))
        else:
            rates = relative_rates(samples.features, samples.target)
        return Rates.of(samples, rates, 0.0)

    def load(self, folder: Path) -> Fitted:
        """Return the rates from their file."""
        return Rates.read(folder)


def check_costs(samples: Samples) -> None:
    """Refuse features that are no costs.

    Raises
    ------
    InputError
        If one is negative; it names the column.
    """
    negative = (samples.features < 0).any(axis=0)
    if negative.any():
        raise InputError(f"{samples.columns[int(negative.argmax())]} is negative, and costs are summed")


def _neighbours(columns: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of columns that tell the same cost of a stage and of the next one that has it."""
    kinds: dict[str, list[int]] = {}
    for place, name in enumerate(columns):
        if stage := OF_STAGE.fullmatch(name):
            kinds.setdefault(stage[1], []).append(place)
    return [pair for places in kinds.values() for pair in pairwise(places)]
