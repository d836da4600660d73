"""Boosted trees for each kind of kernel, whose times add up to a network's; with power, to its energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.kernel_sums import KernelKind, KernelSum, costs_of
from dlas.prediction.predictors.fitted.least_squares import relative_rates
from dlas.prediction.predictors.fitted.power import Power
from dlas.stack import Fitted, Kernels, Predictor, Samples, Workspace

FEWEST_SEARCHED = 200
"""Kernels of a kind below which a search would fit noise."""
ENERGY = "energy_j"
Share = Annotated[float, Field(gt=0, le=1)]


@dataclass(frozen=True)
class BoostedKernels(Predictor):
    """Predict each kernel, and add up.

    A kernel's time is a sum of its multiply-adds, values, weights and a constant, as in ``additive`` but
    with rates of its kind, times a factor from boosted trees.  So it extrapolates where trees alone
    cannot.  A network's time is the sum of its kernels' times a factor, and an overhead for each
    kernel; both are fitted to whole networks.  So is energy, of which each kernel's time is multiplied by
    its power.  Where rows tell the energy of kernels, boosted trees predict that; where they tell that of
    networks alone, it is one for each kind.

    Where it is fitted to several devices, or to one at several clocks, the trees also read what tells them
    apart: threads, cores, clocks, compiler and algorithm.  Where the same device was measured on fewer
    threads too, a kernel's time is what is predicted of these times a ratio, from trees of all kinds
    together: so a quarter of the networks is enough on more threads.

    References
    ----------
    MIRAGE, sections 4.2, 4.3 and 6.2; the ranges of the options are those of its Table 2, but for the number
    of trees, of which a search tries 100, 300 and 900 in place of 100 to 3,000.
    """

    trials: Annotated[int, Field(ge=0, le=1000)] = 0
    """Settings that are tried on groups held out, for each kind of kernel; the best replace the options
    below. 0 for none, where MIRAGE searches: a search takes minutes, and each group that is held out has one.
    """
    rounds: Annotated[int, Field(ge=1, le=3000)] = 300
    """Trees of each kind of kernel."""
    depth: Annotated[int, Field(ge=1, le=11)] = 6
    """Depth of a tree."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.05
    fewest_in_leaf: Annotated[int, Field(ge=0)] = 5
    """Least sum of weights in a leaf."""
    share_of_rows: Share = 0.9
    """What each tree is fitted to."""
    share_of_columns: Share = 0.9
    """What each tree is fitted to."""
    regularisation: Annotated[float, Field(ge=0)] = 0.001
    """Penalty of the leaves' values, absolute and squared."""

    level: ClassVar[Literal["network", "kernel"]] = "kernel"

    def families(self, target: str) -> tuple[str, ...]:
        """Return a network's costs, whose ranges tell what is like the rows that were fitted.

        Raises
        ------
        InputError
            If the target is neither a time nor energy, which kernels add up to.
        """
        if not target.startswith("latency") and target != ENERGY:
            raise InputError(
                f"boosted_kernels predicts latencies and {ENERGY}, and {target} is none: kernels do not add "
                "up to it"
            )
        return ("costs",)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the predictors of each kind of kernel, and what makes a network of their sum."""
        assert samples.kernels is not None
        timed = samples.kernels.take(samples.kernels.seconds > 0)
        fewer = samples.fewer_threads
        if fewer is None or samples.quantity == ENERGY or len(fewer) < self.fewest:
            return self._sum(samples, timed, workspace).scaled_to(samples)
        assert fewer.kernels is not None
        on_fewer = self._sum(fewer, fewer.kernels.take(fewer.kernels.seconds > 0), workspace)
        return on_fewer.on_more_threads(timed).scaled_to(samples)

    def _sum(self, samples: Samples, timed: Kernels, workspace: Workspace) -> KernelSum:
        """Return the predictors of each kind of kernel, of those that have a time."""
        timed = timed.without_constants()
        kinds = {}
        groups = np.array(samples.groups)[timed.points]
        for name in sorted(set(timed.kinds.tolist())):
            own = timed.kinds == name
            workspace.say(f"boosted_kernels: {name}, {own.sum():,} kernels")
            kinds[name] = self._fit_kind(timed.take(own), groups[own].tolist(), workspace.seed)
        power = self._power(timed, samples, workspace.seed) if samples.quantity == ENERGY else None
        return KernelSum(timed.columns, kinds, _seconds_a_value(timed), 1.0, 0.0, power)

    def load(self, folder: Path) -> Fitted:
        """Return what was fitted from its files."""
        return KernelSum.read(folder)

    def _power(self, kernels: Kernels, samples: Samples, seed: int) -> Power:
        """Return the power of kernels, as their own energies tell it, or else those of networks."""
        if not (kernels.joules > 0).any():
            return Power.fitted(kernels, samples.target)
        settings = self._settings(seed)
        return Power.boosted(
            kernels,
            self.fewest,
            lambda features, target: Booster.fitted(features, target, self.rounds, settings),
        )

    def _fit_kind(self, kernels: Kernels, groups: Sequence[str], seed: int) -> KernelKind:
        """Return the predictor of kernels of one kind."""
        rates = relative_rates(costs_of(kernels), kernels.seconds)
        kind = KernelKind(rates, float(kernels.seconds.min()), None)
        ratio = kernels.seconds / kind.sums(kernels)
        if len(ratio) < self.fewest:
            return kind
        rounds, settings = self.rounds, self._settings(seed)
        if self.trials and len(ratio) >= FEWEST_SEARCHED and len(set(groups)) > 1:
            from dlas.prediction.predictors.fitted.hyperparameters import search

            found = search(kernels.features, np.log(ratio), groups, self.trials, seed)
            rounds, settings = found.rounds, found.settings
        return replace(kind, booster=Booster.fitted(kernels.features, np.log(ratio), rounds, settings))

    def _settings(self, seed: int) -> dict[str, Any]:
        """Return the options by XGBoost's names."""
        return {
            "max_depth": self.depth,
            "learning_rate": self.learning_rate,
            "min_child_weight": self.fewest_in_leaf,
            "subsample": self.share_of_rows,
            "colsample_bytree": self.share_of_columns,
            "reg_alpha": self.regularisation,
            "reg_lambda": self.regularisation,
            "seed": seed,
        }


def _seconds_a_value(kernels: Kernels) -> float:
    """Return the median time of a value read or written, in kernels without multiply-adds if any."""
    moving = kernels.column("macs") == 0
    chosen = kernels.take(moving) if moving.any() else kernels
    return float(np.median(chosen.seconds / np.maximum(chosen.column("values"), 1.0)))
