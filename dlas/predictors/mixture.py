"""What predictors of other devices say, mixed for a device of which little was measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.optimize import nnls

from dlas.predictors.additive import Additive
from dlas.predictors.fitted.bases import read_bases
from dlas.predictors.fitted.rates import Rates
from dlas.stack import Fitted, InputError, Predictor, Samples, Workspace

PRIOR = 0.01
"""Weight of the equal mixture, in rows for each device."""


@dataclass(frozen=True)
class Mixture(Predictor):
    """Weights, never negative, on what ``additive`` by stages says for other devices: ten rows are enough.

    Each device's predictions are scaled to the rows; where they say too little, all weigh alike.

    Parameters
    ----------
    base : str
        Folders that ``dlas fit additive --set costs=stage`` wrote, separated by commas; each
        setting in them is a device.
    """

    fewest: ClassVar[int] = 5

    base: str

    def verify(self) -> None:
        """Read the bases.

        Raises
        ------
        InputError
        """
        self._folders()

    def families(self, target: str) -> tuple[str, ...]:
        """Return the costs that the devices' predictors sum."""
        return Additive("stage").families(target)

    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the mixture with the least relative error: a sum of the same costs."""
        devices = [Rates.read(folder) for folder in self._folders(samples.columns)]
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

    def _folders(self, columns: tuple[str, ...] | None = None) -> list[Path]:
        """Return the folders of the devices' rates, which read these columns.

        Raises
        ------
        InputError
            If a base is another predictor, or was fitted to other features.
        """
        found = []
        for name in filter(None, (name.strip() for name in self.base.split(","))):
            for base in read_bases(name):
                if base.part != "additive":
                    raise InputError(f"base {name!r} is a {base.part!r}; expected a fitted 'additive'")
                if columns is not None and base.columns != columns:
                    raise InputError(
                        f"base {name!r} sums other costs: {len(base.columns)} columns in place of "
                        f"{len(columns)}; fit it with --set costs=stage"
                    )
                found.append(base.folder)
        if not found:
            raise InputError(
                f"base = {self.base!r}: expected folders of fitted predictors, separated by commas"
            )
        return found
