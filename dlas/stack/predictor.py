"""Predictors: fitted to measured rows, they tell what points that were never run would measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dlas.stack.model import Workspace
from dlas.stack.part import Part

OF_DEVICE = ("device.", "compiler=", "algorithm=")
"""Beginnings of the names of features that tell a kernel's device: its numbers, compiler, algorithm."""


@dataclass(frozen=True)
class Kernels:
    """The kernels of points, those of one point after those of another."""

    points: npt.NDArray[np.intp]
    """The place of each kernel's point among the samples; [n]."""
    kinds: npt.NDArray[np.str_]
    """What each computes; kernels of one kind have one predictor; [n] of str."""
    columns: tuple[str, ...]
    """Names of the features; those of devices begin with one of :data:`OF_DEVICE`."""
    features: npt.NDArray[np.float64]
    """[n, columns]."""
    seconds: npt.NDArray[np.float64]
    """What was measured, NaN where it was not; [n]."""
    energies: npt.NDArray[np.float64] | None = None
    """The energy of a call of each in J, NaN where it was not measured; [n]. None where none was."""

    def __len__(self) -> int:
        return len(self.points)

    @property
    def joules(self) -> npt.NDArray[np.float64]:
        """What was measured of each, NaN where it was not; in J."""
        return np.full(len(self), np.nan) if self.energies is None else self.energies

    def of(self, places: npt.NDArray[np.intp]) -> Kernels:
        """Return the kernels of some points, in the order of these places."""
        order = np.argsort(self.points, kind="stable")
        first, last = (np.searchsorted(self.points, places, side, order) for side in ("left", "right"))
        chosen = [order[start:end] for start, end in zip(first, last, strict=True)]
        return replace(
            self.take(np.concatenate([np.empty(0, dtype=np.intp), *chosen])),
            points=np.repeat(np.arange(len(places)), last - first),
        )

    def take(self, places: npt.NDArray[Any]) -> Kernels:
        """Return some of the kernels, by their places or by a mask."""
        return replace(
            self,
            points=self.points[places],
            kinds=self.kinds[places],
            features=self.features[places],
            seconds=self.seconds[places],
            energies=None if self.energies is None else self.energies[places],
        )

    def with_columns(self, names: tuple[str, ...]) -> Kernels:
        """Return the kernels with these features alone; those of devices that are missing are 0, unknown.

        Raises
        ------
        KeyError
            If another one is missing.
        """
        if names == self.columns:
            return self
        places = {name: place for place, name in enumerate(self.columns)}
        if unknown := [name for name in names if name not in places and not name.startswith(OF_DEVICE)]:
            raise KeyError(unknown[0])
        known = [place for place, name in enumerate(names) if name in places]
        features = np.zeros((len(self), len(names)))
        features[:, known] = self.features[:, [places[names[place]] for place in known]]
        return replace(self, columns=names, features=features)

    def without_constants(self) -> Kernels:
        """Return the kernels without the features of devices that are the same in all."""
        varies = np.ptp(self.features, axis=0) > 0 if len(self) else np.zeros(len(self.columns), dtype=bool)
        kept = [
            name
            for name, differs in zip(self.columns, varies, strict=True)
            if differs or not name.startswith(OF_DEVICE)
        ]
        return self.with_columns(tuple(kept))

    def column(self, name: str) -> npt.NDArray[np.float64]:
        """Return a feature of each kernel."""
        return self.features[:, self.columns.index(name)]


@dataclass(frozen=True)
class Samples:
    """Points as a table: what is known of them, and what was measured."""

    ids: tuple[str, ...]
    """The points; tuple of str, length n."""
    columns: tuple[str, ...]
    """Names of the features, ``family.name``."""
    features: npt.NDArray[np.float64]
    """[n, columns]."""
    target: npt.NDArray[np.float64]
    """What was measured, in SI units; NaN for points that were not run; [n]."""
    groups: tuple[str, ...]
    """Rows of one group are alike and err together: a network, a pruning level; tuple of str, length n."""
    quantity: str = ""
    """What the target is, a column of rows: ``latency_s``."""
    kernels: Kernels | None = None
    """For predictors of kernels."""
    fewer_threads: Samples | None = None
    """Points on fewer threads of the same device, which tell of kernels what these do not; None of most."""

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, places: Sequence[int] | npt.NDArray[np.int_]) -> Samples:
        """Return some of the points, by their places; groups without any are lost on fewer threads, too."""
        chosen = np.asarray(places, dtype=np.intp)
        groups = tuple(self.groups[place] for place in chosen)
        fewer = self.fewer_threads
        if fewer is not None and (lost := set(self.groups) - set(groups)):
            fewer = fewer.take([place for place, group in enumerate(fewer.groups) if group not in lost])
        return replace(
            self,
            ids=tuple(self.ids[place] for place in chosen),
            features=self.features[chosen],
            target=self.target[chosen],
            groups=groups,
            kernels=None if self.kernels is None else self.kernels.of(chosen),
            fewer_threads=fewer,
        )


class Fitted(ABC):
    """A predictor that was fitted to rows."""

    @abstractmethod
    def predict(self, samples: Samples) -> npt.NDArray[np.float64]:
        """Return the predictions [n], positive and in the unit of the target."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what :meth:`Predictor.load` needs into ``folder``; no pickles."""

    def of_kernels(self, kernels: Kernels) -> npt.NDArray[np.float64] | None:
        """Return the seconds [n] of each kernel as profiled; None where the predictor reads no kernels."""
        return None

    def unknown(self, samples: Samples) -> npt.NDArray[np.float64]:
        """Return the share [n] of each prediction for kernels of kinds of which none or few were fitted."""
        return np.zeros(len(samples))

    def told(
        self, samples: Samples, seconds: npt.NDArray[np.float64] | None = None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return what :meth:`predict` and :meth:`unknown` return, which may have much in common.

        Parameters
        ----------
        seconds : array [kernels], optional
            What :meth:`of_kernels` returned for the samples' kernels, where that is known already.
        """
        return self.predict(samples), self.unknown(samples)

    def importances(self) -> Sequence[float] | None:
        """Return each column's share in the predictions, in the order of the samples' columns.

        None where the predictor cannot tell.
        """
        return None


class Predictor(Part, ABC):
    """A method of prediction; its fields are its options."""

    fewest: ClassVar[int] = 20
    """Rows that fitting takes at least."""
    level: ClassVar[Literal["network", "kernel"]] = "network"
    """Whether it reads features of networks, or of each kernel: ``Samples.kernels``."""

    @abstractmethod
    def families(self, target: str) -> tuple[str, ...]:
        """Return the families of features that it reads to predict ``target``.

        Raises
        ------
        InputError
            If it cannot predict such a target.
        """

    @abstractmethod
    def fit(self, samples: Samples, workspace: Workspace) -> Fitted:
        """Return the predictor fitted to ``samples``, every target of which is known and positive."""

    @abstractmethod
    def load(self, folder: Path) -> Fitted:
        """Return what :meth:`Fitted.save` wrote into ``folder``, which may come from elsewhere.

        Raises
        ------
        InputError
            If a file is damaged.
        """
