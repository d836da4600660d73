"""Times of kernels that add up to the times of networks, or with their power to the energy."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dlas.errors import InputError
from dlas.prediction.predictors.fitted.arrays import read_arrays, write_arrays
from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.kernel_index import COSTS, KernelIndex
from dlas.prediction.predictors.fitted.least_squares import median_rates, relative_rates
from dlas.prediction.predictors.fitted.power import Power
from dlas.prediction.predictors.fitted.thread_ratio import ThreadRatio
from dlas.prediction.predictors.fitted.walks import LARGEST, Places, Walks
from dlas.stack import Fitted, Kernels, Samples
from dlas.stack.types import Floats


@dataclass(frozen=True)
class KernelKind:
    """What predicts kernels of one kind."""

    rates: Floats
    """Seconds a unit of each cost; [len(COSTS)]."""
    floor: float
    """The shortest that was fitted: a sum of costs predicts at least a tenth of it; in s."""
    booster: Booster | None
    """Predicts the logarithm of the measured time over that sum; None where kernels were too few."""

    def sums(self, kernels: Kernels) -> Floats:
        """Return the sums of the costs of kernels of this kind, in seconds."""
        return np.asarray(np.maximum((costs_of(kernels) * self.rates).sum(axis=1), self.floor / 10))


def costs_of(kernels: Kernels) -> Floats:
    """Return the costs [n, len(COSTS)] of kernels."""
    return kernels.features[:, [kernels.columns.index(name) for name in COSTS]]


@dataclass(frozen=True)
class KernelSum(Fitted):
    """Predictors of each kind of kernel, and what makes a network of their sum."""

    columns: tuple[str, ...]
    """The kernels' features that were fitted."""
    kinds: Mapping[str, KernelKind]
    seconds_a_value: float
    """For kinds that were never fitted, by the values that they read and write."""
    factor: float
    """A network takes ``factor`` times the sum of its kernels, and ``overhead`` for each, seconds or joules.
    """
    overhead: float
    """A network takes ``factor`` times the sum of its kernels, and ``overhead`` for each, seconds or joules.
    """
    power: Power | None = None
    """Of energy, what each kernel's time is multiplied by; None for times."""
    thread_ratio: ThreadRatio | None = None
    """What makes times on more threads of those above; None where they were fitted to all threads."""

    def on_more_threads(self, kernels: Kernels) -> KernelSum:
        """Return the sum of what was predicted so far times what it takes for kernels on more threads.

        Parameters
        ----------
        kernels : Kernels
            Measured on more threads; all have a time.
        """
        own = self._with_columns(kernels)
        ratio = ThreadRatio.fitted(own, self.of_kernels(own), self._places(own), len(self.kinds))
        return replace(self, thread_ratio=ratio)

    def scaled_to(self, samples: Samples) -> KernelSum:
        """Return the sum with the factor and the overhead that make networks of it.

        They make a network of the measured times of its kernels, or of their energies, with the least
        absolute relative error: of predicted ones they would make up for kernels that are predicted too short
        in the networks that were fitted, not in others.  Where kernels were not measured, it is least squares
        of what is predicted.
        """
        assert samples.kernels is not None
        count = np.bincount(samples.kernels.points, minlength=len(samples))
        of_kernels = samples.kernels.seconds if self.power is None else samples.kernels.joules
        measured = np.bincount(samples.kernels.points, of_kernels, len(samples))
        if (known := measured > 0).any():
            sums = np.column_stack([measured, count]).astype(np.float64)[known]
            factor, overhead = median_rates(sums, samples.target[known])
        else:
            total = np.bincount(samples.kernels.points, self._parts(samples.kernels), len(samples))
            factor, overhead = relative_rates(np.column_stack([total, count]), samples.target)
        return replace(self, factor=float(factor), overhead=float(overhead))

    def predict(self, samples: Samples) -> Floats:
        """Return the seconds of each network, or the joules."""
        return self.told(samples)[0]

    def of_kernels(self, kernels: Kernels) -> Floats:
        """Return the seconds of each kernel as profiled, without a network's factor and overhead.

        Raises
        ------
        InputError
            If kernels have other features than those that were fitted.
        """
        kernels = self._with_columns(kernels)
        found = kernels.column("values") * self.seconds_a_value
        places = self._places(kernels)
        if len(known := np.flatnonzero(places >= 0)):
            whole = len(known) == len(kernels)
            own, kinds = (kernels, places) if whole else (kernels.take(known), places[known])
            rates, floors = self._linear
            total = np.maximum((costs_of(own) * rates[kinds]).sum(axis=1), floors[kinds] / 10)
            found[known] = total * np.exp(self._corrections(own.features, kinds))
        if self.thread_ratio is not None and len(kernels):
            found *= self.thread_ratio.of(kernels, found, places, len(self.kinds))
        return found

    def unknown(self, samples: Samples) -> Floats:
        """Return the share [n] of each prediction for kernels of kinds of which none or few were fitted."""
        return self.told(samples)[1]

    def told(self, samples: Samples, seconds: Floats | None = None) -> tuple[Floats, Floats]:
        """Return what :meth:`predict` and :meth:`unknown` return, for the price of one."""
        assert samples.kernels is not None
        points, total = samples.kernels.points, len(samples)
        parts = self.factor * self._parts(samples.kernels, seconds) + self.overhead
        strange = self._columns[self._places(samples.kernels)] == self._columns[-1]
        whole = np.bincount(points, parts, total)
        share = np.bincount(points, parts * strange, total) / np.maximum(whole, 1e-300)
        return np.asarray(whole, dtype=np.float64), np.asarray(share, dtype=np.float64)

    def save(self, folder: Path) -> None:
        """Write the names of the kinds, their rates, and the trees of each."""
        kinds = list(self.kinds.values())
        boosted = [place for place, kind in enumerate(kinds) if kind.booster is not None]
        boosters = {} if self.power is None else self.power.boosters
        powered = {place for place, name in enumerate(self.kinds) if name in boosters}
        of_energy, on_more_threads = self.power is not None, self.thread_ratio is not None
        index = KernelIndex(
            self.columns, tuple(self.kinds), set(boosted), of_energy, powered, on_more_threads
        )
        index.write(folder)
        arrays = {
            "rates": np.array([kind.rates for kind in kinds]),
            "floors": np.array([kind.floor for kind in kinds]),
            "network": np.array([self.seconds_a_value, self.factor, self.overhead]),
        }
        if self.power is not None:
            watts = [self.power.watts.get(name, self.power.mean) for name in self.kinds]
            arrays["power"] = np.array([*watts, self.power.mean])
        write_arrays(folder, arrays)
        for place, kind in enumerate(kinds):
            if kind.booster is not None:
                kind.booster.save(folder / _trees(place))
        if self.thread_ratio is not None:
            self.thread_ratio.save(folder)
        for place in powered:
            boosters[list(self.kinds)[place]].save(folder / _power_trees(place))

    @classmethod
    def read(cls, folder: Path) -> KernelSum:
        """Return what :meth:`save` wrote, which may come from elsewhere.

        Raises
        ------
        InputError
            If a file is missing or damaged.
        """
        index = KernelIndex.read(folder)
        columns, names = index.columns, index.kinds
        shapes = {"rates": (len(names), len(COSTS)), "floors": (len(names),), "network": (3,)}
        shapes |= {"power": (len(names) + 1,)} if index.of_energy else {}
        arrays = read_arrays(folder, {name: len(shape) for name, shape in shapes.items()})
        if any(arrays[name].shape != shape for name, shape in shapes.items()):
            raise InputError(f"{folder}: arrays of other shapes than {len(names)} kinds of kernels have")
        if any(not np.isfinite(array).all() or array.min(initial=0) < 0 for array in arrays.values()):
            raise InputError(f"{folder}: rates, times and powers must be finite and not negative")
        rates, floors, network = (arrays[name] for name in ("rates", "floors", "network"))
        kinds = {
            name: KernelKind(
                rates[place],
                float(floors[place]),
                Booster.read(folder / _trees(place), len(columns)) if place in index.boosted else None,
            )
            for place, name in enumerate(names)
        }
        power = None
        if index.of_energy:
            *watts, mean = map(float, arrays["power"])
            boosters = {
                name: Booster.read(folder / _power_trees(place), len(columns))
                for place, name in enumerate(names)
                if place in index.powered
            }
            power = Power(dict(zip(names, watts, strict=True)), mean, boosters)
        seconds_a_value, factor, overhead = map(float, network)
        ratio = ThreadRatio.read(folder, len(columns), len(names)) if index.on_more_threads else None
        return cls(columns, kinds, seconds_a_value, factor, overhead, power, ratio)

    def _parts(self, kernels: Kernels, seconds: Floats | None = None) -> Floats:
        """Return what each kernel adds to its network: its seconds, or its joules."""
        seconds = self.of_kernels(kernels) if seconds is None else seconds
        return seconds if self.power is None else seconds * self.power.of(self._with_columns(kernels))

    def _with_columns(self, kernels: Kernels) -> Kernels:
        """Return kernels with the features that were fitted.

        Raises
        ------
        InputError
            If they lack one.
        """
        try:
            return kernels.with_columns(self.columns)
        except KeyError as error:
            raise InputError(
                f"the predictor was fitted to other features of kernels, such as {error}; fit it again"
            ) from None

    def _places(self, kernels: Kernels) -> Places:
        """Return the place of each kernel's kind [n] among those that were fitted; -1 for none."""
        index = {name: place for place, name in enumerate(self.kinds)}
        return np.array([index.get(kind, -1) for kind in kernels.kinds.tolist()], dtype=np.intp)

    @functools.cached_property
    def _linear(self) -> tuple[Floats, Floats]:
        """The rates [kinds, len(COSTS)] and the floors [kinds] of all kinds."""
        kinds = self.kinds.values()
        rates = np.array([kind.rates for kind in kinds], dtype=np.float64).reshape(-1, len(COSTS))
        return rates, np.array([kind.floor for kind in kinds], dtype=np.float64)

    @functools.cached_property
    def _columns(self) -> Places:
        """The place of each kind's trees [kinds + 1] among all; the number of trees for kinds without any.

        The last one is of kinds that were never fitted.
        """
        boosted = [kind.booster is not None for kind in self.kinds.values()]
        return np.array([*np.where(boosted, np.cumsum(boosted) - 1, sum(boosted)), sum(boosted)], np.intp)

    @functools.cached_property
    def _walks(self) -> Walks | None:
        """The trees of all kinds as arrays, where there are any and they were read from files."""
        boosters = [kind.booster for kind in self.kinds.values() if kind.booster is not None]
        nodes = [booster.nodes for booster in boosters if booster.nodes is not None]
        return Walks.of(nodes) if nodes and len(nodes) == len(boosters) else None

    def _corrections(self, features: Floats, kinds: Places) -> Floats:
        """Return what the trees of their kinds say of kernels [n]; 0 where a kind has none."""
        walks, present = self._walks, np.unique(kinds)
        if walks is not None and walks.cheaper(len(kinds), len(present)) and np.abs(features).max() < LARGEST:
            return walks.sums(features, self._columns[kinds])
        found, boosters = np.zeros(len(kinds)), [kind.booster for kind in self.kinds.values()]
        for place in present:
            if (booster := boosters[place]) is not None:
                chosen = np.flatnonzero(kinds == place)
                found[chosen] = booster.predict(features[chosen])
        return found


def _trees(place: int) -> str:
    return f"trees_{place}.json"


def _power_trees(place: int) -> str:
    return f"power_trees_{place}.json"
