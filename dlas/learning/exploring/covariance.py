"""How alike the latencies of two points are, before anything is known of them: an analysis of variance.

The logarithm of a latency is a sum: of an effect of each factor, of an effect of each pair of factors, and of
the multiply-adds of the network.  Effects of names and texts are independent of each other; those of numbers
(levels, threads, batch sizes) change smoothly along their scale.  How large the effects of a factor are is
fitted, starting from what is usual in sweeps: a part changes the latency by a factor of two or so, and with
another part beside it by a quarter more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlas.learning.exploring.space import Codes, Factor, Space

Array = npt.NDArray[np.float64]

LEVEL_VARIANCE = 25.0
"""Variance of what all points share: it is hardly known before a point is measured."""
USUAL = {"noise": 0.1, "work": 0.8, "effect": 0.7, "pair": 0.45, "reach": 0.8}
"""Where parameters start: standard deviations of logarithms; and over which part of its scale a number's
effect stays alike."""
EFFECTS = {"kind of compiler": 1.2, "compiler": 0.4, "algorithm": 0.5, "compression": 0.3}
"""Effects of factors that are usually larger or smaller: code without a schedule is tens of times slower."""
DOUBT = {"noise": 0.5, "work": 0.5, "effect": 0.8, "pair": 0.7, "reach": 0.5}
"""Standard deviations of the logarithms of the parameters around these."""


@dataclass(frozen=True)
class Covariance:
    """The covariance of logarithms of latencies between points of a space.

    Its parameters are logarithms, in the order of :attr:`names`: of the noise of a measurement; of the
    exponent of multiply-adds; for each factor, of its effects and of its effects in pairs; for each factor of
    numbers, of the reach of its effects.

    Parameters
    ----------
    factors : sequence of Factor
    work : array [n]
        Logarithm of each point's multiply-adds less the mean of all, 0 where they are not known.
    """

    factors: Sequence[Factor]
    work: Array

    @classmethod
    def of(cls, space: Space, work: Array) -> Covariance:
        """Return the covariance of a space's points."""
        return cls(space.factors, work)

    @property
    def names(self) -> list[str]:
        """What each parameter is."""
        numbers = sum(factor.places is not None for factor in self.factors)
        count = len(self.factors)
        return ["noise", "work", *["effect"] * count, *["pair"] * count, *["reach"] * numbers]

    def usual(self) -> tuple[Array, Array]:
        """Return what the parameters are before anything is measured, and their standard deviations."""
        middles = np.log([USUAL[name] for name in self.names])
        own = [EFFECTS.get(factor.name, USUAL["effect"]) for factor in self.factors]
        middles[2 : 2 + len(own)] = np.log(own)
        return middles, np.array([DOUBT[name] for name in self.names])

    def between(self, parameters: Array, rows: Codes, columns: Codes) -> Array:
        """Return the covariance of some points with others, without noise, [rows, columns]."""
        effects, pairs = self._variances(parameters)
        total, squares = np.zeros((2, len(rows), len(columns)))
        result = self._shared(parameters, rows, columns)
        for effect, pair, one in zip(effects, pairs, self._alike(parameters, rows, columns), strict=True):
            result += effect * one
            total += pair * one
            squares += (pair * one) ** 2
        # Half of what the square of a sum has beside the squares: the products of all pairs.
        result += (total**2 - squares) / 2
        return result

    def variances(self, parameters: Array, rows: Codes) -> Array:
        """Return the variance of some points, without noise."""
        effects, pairs = self._variances(parameters)
        own = effects.sum() + (pairs.sum() ** 2 - (pairs**2).sum()) / 2
        work = np.exp(2 * parameters[1]) * self.work[rows] ** 2
        return np.asarray(LEVEL_VARIANCE + own + work, dtype=np.float64)

    def with_slopes(self, parameters: Array, rows: Codes) -> tuple[Array, list[Array]]:
        """Return the covariance of measured points, noise included, and its derivative by each parameter."""
        alike = [*self._alike(parameters, rows, rows)]
        effects, pairs = self._variances(parameters)
        noise = np.exp(2 * parameters[0]) * np.eye(len(rows))
        work = np.exp(2 * parameters[1]) * np.outer(self.work[rows], self.work[rows])
        total = sum((pair * one for pair, one in zip(pairs, alike, strict=True)), np.zeros_like(noise))
        others = [total - pair * one for pair, one in zip(pairs, alike, strict=True)]
        in_pairs = [pair * one * rest for pair, one, rest in zip(pairs, alike, others, strict=True)]
        single = [effect * one for effect, one in zip(effects, alike, strict=True)]
        result = LEVEL_VARIANCE + noise + work + sum(single) + sum(in_pairs) / 2
        slopes = [2 * noise, 2 * work, *(2 * one for one in single), *(2 * one for one in in_pairs)]
        for place, factor in enumerate(self.factors):
            if factor.places is not None:
                apart = self._apart(parameters, place, rows, rows) ** 2
                slopes.append((single[place] + in_pairs[place]) * np.nan_to_num(apart))
        return result, slopes

    def _shared(self, parameters: Array, rows: Codes, columns: Codes) -> Array:
        """Return the covariance of what all points share and of their multiply-adds."""
        work = np.exp(2 * parameters[1]) * np.outer(self.work[rows], self.work[columns])
        return np.asarray(LEVEL_VARIANCE + work, dtype=np.float64)

    def _variances(self, parameters: Array) -> tuple[Array, Array]:
        """Return the variances of the effects, alone and in pairs, of each factor."""
        count = len(self.factors)
        single, pairs = parameters[2 : 2 + count], parameters[2 + count : 2 + 2 * count]
        return np.exp(2 * single), np.exp(2 * pairs)

    def _alike(self, parameters: Array, rows: Codes, columns: Codes) -> Iterator[Array]:
        """Yield for each factor how alike its values are, from 0 to 1, [rows, columns]."""
        for place, factor in enumerate(self.factors):
            if factor.places is None:
                yield (factor.codes[rows][:, None] == factor.codes[columns][None, :]).astype(np.float64)
                continue
            near = np.exp(-(self._apart(parameters, place, rows, columns) ** 2) / 2)
            absent = np.isnan(factor.places)
            # Points without the option are alike in it, and unlike those with it.
            both = absent[rows][:, None] & absent[columns][None, :]
            yield np.where(np.isnan(near), both.astype(np.float64), near)

    def _apart(self, parameters: Array, place: int, rows: Codes, columns: Codes) -> Array:
        """Return how many reaches numbers are apart, NaN where a point has none."""
        factor = self.factors[place]
        assert factor.places is not None
        numbers = [at for at, other in enumerate(self.factors) if other.places is not None]
        reach = np.exp(parameters[2 + 2 * len(self.factors) + numbers.index(place)])
        difference = factor.places[rows][:, None] - factor.places[columns][None, :]
        return np.asarray(difference / reach, dtype=np.float64)
