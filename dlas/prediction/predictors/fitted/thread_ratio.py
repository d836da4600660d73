"""What kernels take on more threads, over what they take on fewer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.walks import Places
from dlas.stack import Kernels
from dlas.stack.types import Floats

FILE = "thread_ratio.json"
ROUNDS = 200
SETTINGS = {"objective": "reg:absoluteerror", "max_depth": 4, "learning_rate": 0.05, "base_score": 0.0}
"""XGBoost's: a few trees for all kinds together, since a quarter of the networks is enough for a ratio."""


@dataclass(frozen=True)
class ThreadRatio:
    """Trees for all kinds of kernels together, which also read how long a kernel takes on fewer threads."""

    booster: Booster

    @classmethod
    def fitted(cls, kernels: Kernels, fewer_s: Floats, places: Places, kinds: int) -> ThreadRatio:
        """Return the ratio of measured times and what is predicted of fewer threads.

        Parameters
        ----------
        kernels : Kernels
            Measured on more threads; all have a time.
        fewer_s : array [n], s
            What is predicted of each on fewer threads.
        places : array [n]
            Each kernel's kind among ``kinds``; -1 for none of them.
        kinds : int
        """
        target = np.log(kernels.seconds / fewer_s)
        return cls(Booster.fitted(_table(kernels, fewer_s, places, kinds), target, ROUNDS, SETTINGS))

    def of(self, kernels: Kernels, fewer_s: Floats, places: Places, kinds: int) -> Floats:
        """Return the ratio [n] of each kernel; parameters as for :meth:`fitted`."""
        return np.exp(self.booster.predict(_table(kernels, fewer_s, places, kinds)))

    def save(self, folder: Path) -> None:
        """Write the trees."""
        self.booster.save(folder / FILE)

    @classmethod
    def read(cls, folder: Path, columns: int, kinds: int) -> ThreadRatio:
        """Return what :meth:`save` wrote, which may come from elsewhere.

        Parameters
        ----------
        columns, kinds : int
            Features of a kernel, and kinds of kernels.

        Raises
        ------
        InputError
            If the file is missing or damaged.
        """
        return cls(Booster.read(folder / FILE, 1 + kinds + columns))


def _table(kernels: Kernels, fewer_s: Floats, places: Places, kinds: int) -> Floats:
    """Return what the trees read: a kernel's time on fewer threads, its kind, its features."""
    is_of = places[:, None] == np.arange(kinds)
    return np.hstack([np.log(fewer_s)[:, None], is_of, kernels.features])
