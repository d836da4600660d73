"""What predictors of other devices say, mixed for a device of which little was measured."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dlas.prediction.predictors.additive import Additive, check_costs
from dlas.prediction.predictors.fitted.bases import Base, read_bases
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace
from dlas.stack.types import Floats

DEVICES = (0.1, 0.3, 0.9)
"""Standard deviations of a device's weight around that of an equal mixture, which are tried."""
COSTS = (0.0, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of the part that all costs add to a prediction, relative to it, which are tried."""
NOISES = (0.01, 0.02, 0.04, 0.08, 0.12, 0.2, 0.3)
"""Relative errors of a row, which are tried."""
USUAL_NOISE = 0.06
"""The relative error of a row that is expected beforehand, within a factor of e."""
WITHOUT_COSTS = 0.2
"""How much likelier it is beforehand, in logarithms, that costs add nothing than that they add something."""


@dataclass(frozen=True)
class Mixture(Predictor):
    """Weights on what ``additive`` says for other devices and on the costs themselves: ten rows are enough.

    Each device's predictions are scaled to the rows, and so is each cost.  The weights are normally
    distributed beforehand, of devices around an equal mixture, of costs around nothing, and are the mean of
    what they are after the rows were seen.  How far they may go, and how much the rows err, is what makes the
    rows most likely.  Weights may be negative: a device may be like one device and unlike another.
    """

    fewest: ClassVar[int] = 5

    base: str
    """Folders that ``dlas fit additive`` wrote with ``costs=stage`` or ``costs=own``, separated by commas.
    Each setting in them is a device.
    """

    def verify(self) -> None:
        """Read the bases.

        Raises
        ------
        InputError
        """
        self._bases()

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that the devices' predictors sum: the table's own, or those of each stage."""
        own = any(name.startswith("feature.") for _, base in self._bases() for name in base.columns)
        return Additive("own" if own else "stage").families(target)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the mixture that is expected after the rows: a sum of the same costs.

        Raises
        ------
        InputError
            If a base sums other costs, or predicts a quantity of another unit.
        """
        check_costs(samples)
        devices = self._devices(samples)
        # Their sums, not what they predict, which is never below a tenth of what they were fitted to.
        said = np.column_stack([samples.features @ device.rates + device.constant for device in devices])
        relative = said / samples.target[:, None]
        # Of a device that says nothing of these rows, nothing is taken.
        scales = relative.sum(axis=0) / np.maximum((relative**2).sum(axis=0), np.finfo(float).tiny)
        costs = samples.features / samples.target[:, None]
        means = samples.features.mean(axis=0)
        known = means > 0
        usual = np.exp(np.log(samples.target).mean())
        units = np.where(known, usual / np.where(known, means, 1.0), 0.0)
        weights = _expected(relative * scales, costs * units) * np.concatenate([scales, units])
        of_devices, of_costs = weights[: len(devices)], weights[len(devices) :]
        rates = of_devices @ np.array([device.rates for device in devices]) + of_costs
        return Rates.of(samples, rates, float(of_devices @ [device.constant for device in devices]))

    def load(self, folder: Path) -> Fitted:
        """Return the rates from their file."""
        return Rates.read(folder)

    def _devices(self, samples: Samples) -> list[Rates]:
        """Return what the bases sum, which are the costs of the samples.

        Raises
        ------
        InputError
        """
        devices = []
        for name, base in self._bases():
            base.check_quantity(name, samples.quantity)
            if base.columns != samples.columns:
                raise InputError(
                    f"base {name!r} sums other costs: {_different(base.columns, samples.columns)}; fit it to "
                    "the same ones, with costs = 'stage' or 'own'"
                )
            devices.append(Rates.read(base.folder))
        return devices

    def _bases(self) -> list[tuple[str, Base]]:
        """Return the devices, each behind the folder that it is from.

        Raises
        ------
        InputError
            If a folder holds another predictor, or none is given.
        """
        names = [name.strip() for name in self.base.split(",") if name.strip()]
        found = [(name, base) for name in names for base in read_bases(name)]
        for name, base in found:
            if base.part != "additive":
                raise InputError(f"base {name!r} is a {base.part!r}; expected a fitted 'additive'")
        if not found:
            raise InputError(
                f"base = {self.base!r}: expected folders of fitted predictors, separated by commas"
            )
        return found


def _different(columns: Sequence[str], wanted: Sequence[str]) -> str:
    """Return how columns differ from others, in words."""
    missing = [name for name in wanted if name not in columns]
    return f"it has none of {missing[0]}" if missing else f"{len(columns)} columns in place of {len(wanted)}"


def _expected(devices: Floats, costs: Floats) -> Floats:
    """Return the weights [devices + costs] whose sums of parts are expected to be 1 for each row.

    Parameters
    ----------
    devices : array [rows, devices]
        Scaled predictions over what was measured.
    costs : array [rows, costs]
        Scaled costs over what was measured.
    """
    parts = np.hstack([devices, costs])
    before = np.repeat([1 / devices.shape[1], 0.0], [devices.shape[1], costs.shape[1]])
    missing = 1 - parts @ before
    likeliest, best = -np.inf, before
    for of_devices, of_costs in itertools.product(DEVICES, COSTS):
        spreads = [of_devices, of_costs / np.sqrt(costs.shape[1])]
        variances = np.repeat(spreads, [devices.shape[1], costs.shape[1]]) ** 2
        explained = (parts * variances) @ parts.T
        for noise in NOISES:
            factor = cho_factor(explained + noise**2 * np.eye(len(parts)), lower=True)
            solved = cho_solve(factor, missing)
            likelihood = -(missing @ solved) / 2 - np.log(np.diag(factor[0])).sum()
            likelihood -= np.log(noise / USUAL_NOISE) ** 2 / 2 + (WITHOUT_COSTS / 2 if of_costs else 0.0)
            if likelihood > likeliest:
                likeliest, best = likelihood, before + variances * (parts.T @ solved)
    return best
