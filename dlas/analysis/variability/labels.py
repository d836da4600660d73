"""Tests of whether boards are alike that exchange the boards' labels.

The Anderson-Darling and Kolmogorov-Smirnov tests of MIRAGE (section 3.1) take all values for independent.
Here they are not: samples of a row share its process and its memory, kernels of a row share its minutes,
and the differences at a point share their reference, so that they add up to about zero.  What can be
exchanged if boards are alike is which board a row of a point is of.  So the statistics are those of
the paper, and their distribution is that over random labels: within each point the labels of its rows are
permuted, and all values of a row keep one label.

References
----------
Scholz and Stephens, K-Sample Anderson-Darling Tests, 1987, equation 6.
Phipson and Smyth, Permutation P-values Should Never Be Zero, 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dlas.stack.types import Floats

Numbers = npt.NDArray[np.intp]
LEAST_P = 0.02
"""Smallest p-value, times the number of boards, that the permutations can tell."""
FEWEST = 999
"""Fewest permutations."""
CELLS = 2_000_000
"""Labels of values that are in memory at a time."""


@dataclass(frozen=True)
class LabelledValues:
    """Values of rows, whose labels say which board each is of."""

    values: Floats
    """Relative differences, [values]; rows of one point have equally many."""
    row: Numbers
    """The row that each is of, from 0, [values]."""
    board: Numbers
    """The label of each row, from 0, [rows]."""
    point: Numbers
    """The point of each row, which does not decrease, [rows]."""

    @cached_property
    def sizes(self) -> Numbers:
        """Number of values of each board, the same however labels are permuted, [boards]."""
        return np.bincount(self.board[self.row])

    @cached_property
    def _order(self) -> Numbers:
        return np.argsort(self.values, kind="stable")

    @cached_property
    def _ties(self) -> tuple[Numbers, Numbers]:
        """How many values are smaller than each, in order, and how many are not larger."""
        ordered = self.values[self._order]
        return np.searchsorted(ordered, ordered), np.searchsorted(ordered, ordered, side="right")

    @cached_property
    def _weights(self) -> tuple[Floats, float]:
        """What the Anderson-Darling statistic adds for each value, in order, and for all of them together.

        The square of a difference of distributions is expanded, so that a sum over all values for each
        board becomes one over the values of each.
        """
        count = len(self.values)
        smaller, upto = self._ties
        inner = upto < count
        # Tied values share the weight of their step, and each has it with all larger steps.
        weight = np.zeros(count)
        weight[inner] = 1 / (count * upto[inner] * (count - upto[inner]))
        from_here = [(weight * upto**power)[::-1].cumsum()[::-1][smaller] for power in (0, 1)]
        together = count * float((weight * upto**2).sum()) - 2 * count * float(from_here[1].sum())
        return count**2 * from_here[0], together

    def statistics(self, labels: Numbers) -> tuple[Floats, Floats]:
        """Return both statistics for each of several ways to label the rows.

        Parameters
        ----------
        labels : ndarray, [ways, rows]

        Returns
        -------
        distances : ndarray, [ways, boards]
            Two-sample Kolmogorov-Smirnov statistic of each board against all others.
        anderson_darling : ndarray, [ways]
            The k-sample Anderson-Darling statistic.
        """
        count, sizes, (smaller, upto) = len(self.values), self.sizes, self._ties
        weights, together = self._weights
        starts = sizes.cumsum() - sizes
        # The values of the first board in order, then those of the second, ...
        places = np.argsort(labels[:, self.row[self._order]].astype(np.int16), axis=1, kind="stable")
        own, size = np.arange(count) - np.repeat(starts, sizes), np.repeat(sizes, sizes)
        gaps = np.maximum((own + 1) / size - (upto / count)[places], (smaller / count)[places] - own / size)
        distances = np.maximum.reduceat(gaps, starts, axis=1) * (count / (count - sizes))
        return distances, weights[places] @ ((2 * own + 1) / size) + together

    def permuted(self, count: int) -> Iterator[Numbers]:
        """Yield labels at random, the same for the same rows, [ways, rows] at a time and ``count`` in all."""
        random = np.random.default_rng(0)
        at_once = max(1, CELLS // len(self.values))
        for start in range(0, count, at_once):
            keys = self.point + random.random((min(at_once, count - start), len(self.point)))
            yield self.board[np.argsort(keys, axis=1)]


@dataclass(frozen=True)
class LabelTests:
    """How likely so large statistics are where boards are alike."""

    distances: Floats
    """Kolmogorov-Smirnov statistic of each board against the others, [boards]."""
    p_of_boards: Floats
    """Of each board, not corrected for their number, [boards]."""
    anderson_darling: float
    p: float
    """The k-sample Anderson-Darling statistic and its p-value: whether all boards are alike."""


def label_tests(labelled: LabelledValues, permutations: int | None = None) -> LabelTests:
    """Return both tests.

    Parameters
    ----------
    permutations : int, optional
        By default enough to tell p-values of :data:`LEAST_P` over the number of boards.
    """
    count = permutations or max(FEWEST, round(len(labelled.sizes) / LEAST_P) - 1)
    distances, anderson_darling = labelled.statistics(labelled.board[None])
    # Sums in another order may differ in the last digits: those are equal.
    least = (distances * (1 - 1e-9), anderson_darling * (1 - 1e-9))
    of_boards, of_all = np.ones(len(labelled.sizes)), 1
    for labels in labelled.permuted(count):
        permuted, summed = labelled.statistics(labels)
        of_boards += (permuted >= least[0]).sum(axis=0)
        of_all += int((summed >= least[1]).sum())
    return LabelTests(distances[0], of_boards / (count + 1), float(anderson_darling[0]), of_all / (count + 1))
