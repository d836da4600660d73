"""What predictors of other devices say, mixed for a device of which little was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.fitted.bases import Base, read_bases
from dlas.prediction.predictors.fitted.rates import Rates
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace

PRIOR = 0.01
"""Weight of the equal mixture, in rows for each device."""


@dataclass(frozen=True)
class Mixture(Predictor):
    """Weights, never negative, on what ``additive`` by stages says for other devices: ten rows are enough.

    Each device's predictions are scaled to the rows; where they say too little, all weigh alike.
    """

    fewest: ClassVar[int] = 5

    base: str
    """Folders that ``dlas fit additive --set costs=stage`` wrote, separated by commas; each setting in them
    is a device.
    """

    def verify(self) -> None:
        """Read the bases.

        Raises
        ------
        InputError
        """
        self._bases()

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that the devices' predictors sum."""
        return Additive("stage").families(target)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the mixture with the least relative error: a sum of the same costs.

        Raises
        ------
        InputError
            If a base sums other costs, or predicts a quantity of another unit.
        """
        devices = []
        for name, base in self._bases():
            base.check_quantity(name, samples.quantity)
            if base.columns != samples.columns:
                raise InputError(
                    f"base {name!r} sums other costs: {len(base.columns)} columns in place of "
                    f"{len(samples.columns)}; fit it with costs = 'stage'"
                )
            devices.append(Rates.read(base.folder))
        said = np.column_stack([device.predict(samples) for device in devices])
        relative = said / samples.target[:, None]
        scale = relative.sum(axis=0) / (relative**2).sum(axis=0)
        count = len(devices)
        # Rows beside those of the measurements pull each weight to that of an equal mixture.
        prior = np.sqrt(PRIOR) * np.eye(count)
        known = np.concatenate([np.ones(len(samples)), np.full(count, np.sqrt(PRIOR) / count)])
        weights, _ = nnls(np.vstack([relative * scale, prior]), known, maxiter=100 * count)
        weights = weights * scale
        rates = weights @ np.array([device.rates for device in devices])
        return Rates.of(samples, rates, float(weights @ [device.constant for device in devices]))

    def load(self, folder: Path) -> Fitted:
        """Return the rates from their file."""
        return Rates.read(folder)

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
