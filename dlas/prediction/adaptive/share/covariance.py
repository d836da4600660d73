"""How alike the latencies of two points are, before anything is known of them: an analysis of variance.

The logarithm of a latency is a sum: of trends, such as multiply-adds times a slope; of an effect of each
factor; and of an effect of each pair of factors, and of a factor with a trend, which is a slope of its own
for each part.  Effects of names and texts are independent of each other; those of numbers (levels, threads,
batch sizes) change smoothly along their scale.  How large the effects of a factor are is fitted, starting
from what is usual in sweeps: a part changes the latency by a factor of two or so, and with another part
beside it by a quarter more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dlas.prediction.adaptive.share.space import Codes, Factor, Space
from dlas.prediction.adaptive.share.trends import Trend
from dlas.stack.types import Floats

LEVEL_VARIANCE = 25.0
"""Variance of what all points share: it is hardly known before a point is measured."""
USUAL = {"noise": 0.1, "effect": 0.7, "pair": 0.45, "reach": 0.8}
"""Where parameters start: standard deviations of logarithms; and over which part of its scale a number's
effect stays alike."""
EFFECTS = {"kind of compiler": 0.5, "compiler": 0.25, "algorithm": 0.5, "compression": 0.3}
"""Effects of factors that are usually smaller."""
NUMBERS = 0.35
"""Effects of numbers, beside the trend."""
PAIRS = {"kind of compiler": 1.0}
"""In pairs: an algorithm that is fast with threads alone may be slow with a schedule."""
DOUBT = {"noise": 0.5, "effect": 0.8, "pair": 0.7, "reach": 0.5}
"""Standard deviations of the logarithms of the parameters around these."""


@dataclass(frozen=True)
class Covariance:
    """The covariance of logarithms of latencies between points of a space, and their usual means.

    Its parameters are logarithms, in the order of :attr:`names`: of the noise of a measurement; for each
    factor and each trend, of its effects and of its effects in pairs; for each factor of numbers, of the
    reach of its effects.
    """

    factors: Sequence[Factor]
    trends: Sequence[Trend]
    """Of multiply-adds first."""

    @classmethod
    def of(cls, space: Space, work: Floats) -> Covariance:
        """Return the covariance of a space's points.

        Parameters
        ----------
        work : array [n]
            Logarithm of each point's multiply-adds less the mean of all, 0 where they are not known.
        """
        return cls(space.factors, (Trend("multiply-adds", work), *space.trends))

    @property
    def names(self) -> list[str]:
        """What each parameter is."""
        numbers = sum(factor.places is not None for factor in self.factors)
        count = len(self.factors) + len(self.trends)
        return ["noise", *["effect"] * count, *["pair"] * count, *["reach"] * numbers]

    def usual(self) -> tuple[Floats, Floats]:
        """Return what the parameters are before anything is measured, and their standard deviations."""
        middles = np.log([USUAL[name] for name in self.names])
        own = [EFFECTS.get(factor.name, _effect(factor)) for factor in self.factors]
        own += [trend.doubt for trend in self.trends]
        middles[1 : 1 + len(own)] = np.log(own)
        pairs = [PAIRS.get(factor.name, USUAL["pair"]) for factor in self.factors]
        middles[1 + len(own) : 1 + len(own) + len(pairs)] = np.log(pairs)
        return middles, np.array([DOUBT[name] for name in self.names])

    def means(self, rows: Codes) -> Floats:
        """Return what is usual of some points' logarithms of latencies, up to what all points share."""
        usual = (trend.slope * trend.values[rows] for trend in self.trends)
        return np.asarray(sum(usual, np.zeros(len(rows))), dtype=np.float64)

    def between(self, parameters: Floats, rows: Codes, columns: Codes) -> Floats:
        """Return the covariance of some points with others, without noise, [rows, columns]."""
        count, (effects, pairs) = len(self.factors), self._variances(parameters)
        result = np.full((len(rows), len(columns)), LEVEL_VARIANCE)
        total, squares, slopes = np.zeros((3, len(rows), len(columns)))
        alike = self._alike(parameters, rows, columns)
        for effect, pair, one in zip(effects[:count], pairs[:count], alike, strict=True):
            result += effect * one
            total += pair * one
            squares += (pair * one) ** 2
        for effect, pair, trend in zip(effects[count:], pairs[count:], self.trends, strict=True):
            one = np.outer(trend.values[rows], trend.values[columns])
            result += effect * one
            slopes += pair * one
        # Half of what the square of a sum has beside the squares: the products of all pairs of factors.
        result += (total**2 - squares) / 2 + total * slopes
        return result

    def variances(self, parameters: Floats, rows: Codes) -> Floats:
        """Return the variance of some points, without noise."""
        count, (effects, pairs) = len(self.factors), self._variances(parameters)
        own, total = effects[:count].sum(), pairs[:count].sum()
        squares = np.array([trend.values[rows] ** 2 for trend in self.trends]).T
        single, slopes = squares @ effects[count:], squares @ pairs[count:]
        in_pairs = (total**2 - (pairs[:count] ** 2).sum()) / 2 + total * slopes
        return np.asarray(LEVEL_VARIANCE + own + single + in_pairs, dtype=np.float64)

    def with_slopes(self, parameters: Floats, rows: Codes) -> tuple[Floats, list[Floats]]:
        """Return the covariance of measured points, noise included, and its derivative by each parameter."""
        count, (effects, pairs) = len(self.factors), self._variances(parameters)
        noise = np.exp(2 * parameters[0]) * np.eye(len(rows))
        alike = [*self._alike(parameters, rows, rows)]
        alike += [np.outer(trend.values[rows], trend.values[rows]) for trend in self.trends]
        single = [effect * one for effect, one in zip(effects, alike, strict=True)]
        weighted = [pair * one for pair, one in zip(pairs, alike, strict=True)]
        total, slope = (sum(each, np.zeros_like(noise)) for each in (weighted[:count], weighted[count:]))
        in_pairs = [one * (total - one + slope) for one in weighted[:count]]
        in_pairs += [one * total for one in weighted[count:]]
        both = sum((one * (total - one) for one in weighted[:count]), np.zeros_like(noise)) / 2
        result = LEVEL_VARIANCE + noise + sum(single) + both + total * slope
        derivatives = [2 * noise, *(2 * one for one in single), *(2 * one for one in in_pairs)]
        for place, factor in enumerate(self.factors):
            if factor.places is not None:
                apart = self._apart(parameters, place, rows, rows) ** 2
                derivatives.append((single[place] + in_pairs[place]) * np.nan_to_num(apart))
        return result, derivatives

    def _variances(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Return the variances of the effects, alone and in pairs, of each factor and each trend."""
        count = len(self.factors) + len(self.trends)
        single, pairs = parameters[1 : 1 + count], parameters[1 + count : 1 + 2 * count]
        return np.exp(2 * single), np.exp(2 * pairs)

    def _alike(self, parameters: Floats, rows: Codes, columns: Codes) -> Iterator[Floats]:
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

    def _apart(self, parameters: Floats, place: int, rows: Codes, columns: Codes) -> Floats:
        """Return how many reaches numbers are apart, NaN where a point has none."""
        factor = self.factors[place]
        assert factor.places is not None
        numbers = [at for at, other in enumerate(self.factors) if other.places is not None]
        first = 1 + 2 * (len(self.factors) + len(self.trends))
        reach = np.exp(parameters[first + numbers.index(place)])
        difference = factor.places[rows][:, None] - factor.places[columns][None, :]
        return np.asarray(difference / reach, dtype=np.float64)


def _effect(factor: Factor) -> float:
    """Return the usual effect of a factor."""
    return USUAL["effect"] if factor.places is None else NUMBERS
