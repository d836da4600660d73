"""How boards differ: each one's relative difference, which stand out, and on which networks or kernels.

References
----------
MIRAGE, section 3.1, Figures 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlas.analysis.matching import natural
from dlas.analysis.variability.labels import LabelledValues, label_tests
from dlas.analysis.variability.observed import NETWORK, Observed
from dlas.analysis.variability.power import LEVEL, BoardsNeeded, boards_needed
from dlas.stack.types import Floats
from dlas.sweep.rows import intervals

ALL = "all"
"""The group of all points in a frame."""
HIGHER, LOWER, SPREAD, ALIKE = "higher", "lower", "other spread", "alike"


@dataclass(frozen=True)
class BoardDifference:
    """A board against all others that do not stand out."""

    board: str
    points: int
    rows: int
    """How many rows of how many points it has."""
    rd: tuple[float, float, float]
    """Median over its rows of the relative difference from the median of medians, with its interval of
    level 0.95.
    """
    within: float
    """Median distance of its rows from that median: how much the board differs from itself."""
    distance: float
    """Two-sample Kolmogorov-Smirnov statistic."""
    p: float
    """Its p-value, corrected by Holm's method for the number of boards."""

    @property
    def stands_out(self) -> bool:
        """Whether it differs from the others."""
        return self.p <= LEVEL

    @property
    def verdict(self) -> str:
        """One of ``higher``, ``lower``, ``other spread``, ``alike``."""
        if not self.stands_out:
            return ALIKE
        return HIGHER if self.rd[1] > 0 else LOWER if self.rd[2] < 0 else SPREAD


@dataclass(frozen=True)
class GroupDifference:
    """All boards on one network, or on one class of kernels."""

    group: str
    points: int
    reference: float
    """The median of medians where the group is one point, else NaN."""
    rd: Floats
    """Median relative difference of each board, [boards]."""
    p: float
    """Of the k-sample Anderson-Darling test, corrected by Holm's method for the number of groups."""

    @property
    def apart(self) -> float:
        """By how much the highest board differs from the lowest, as a share of the reference."""
        return float(np.ptp(self.rd))


@dataclass(frozen=True)
class Variability:
    """How several boards differ."""

    observed: Observed
    p: float
    """Of the k-sample Anderson-Darling test of whether all boards are alike."""
    boards: tuple[BoardDifference, ...]
    """In the order of ``observed.boards``."""
    groups: tuple[GroupDifference, ...]
    """Those whose boards are furthest apart first."""
    needed: BoardsNeeded | None
    """How many boards it takes to see a small difference; None by kernel."""

    @property
    def outstanding(self) -> list[BoardDifference]:
        """The boards that stand out, the furthest first."""
        return sorted((each for each in self.boards if each.stands_out), key=lambda each: -abs(each.rd[0]))

    def frame(self) -> pd.DataFrame:
        """Return a line for each board over all points, then one for each group and board.

        Columns are ``network`` or ``kernel`` (``all`` in the first lines), ``board``, ``points``, ``rd``,
        and in the first lines ``rd_low``, ``rd_high``, ``within``, ``distance``, ``p`` and ``verdict``.
        """
        kind = self.observed.by
        over_all = [
            {
                kind: ALL,
                "board": each.board,
                "points": each.points,
                **dict(zip(("rd", "rd_low", "rd_high"), each.rd, strict=True)),
                "within": each.within,
                "distance": each.distance,
                "p": each.p,
                "verdict": each.verdict,
            }
            for each in self.boards
        ]
        by_group = [
            {kind: group.group, "board": board, "points": group.points, "rd": float(rd)}
            for group in self.groups
            for board, rd in zip(self.observed.boards, group.rd, strict=True)
        ]
        return pd.DataFrame(over_all + by_group)


def variability(observed: Observed, permutations: int | None = None) -> Variability:
    """Return how boards differ.

    Parameters
    ----------
    permutations : int, optional
        As for :func:`dlas.analysis.variability.labels.label_tests`.
    """
    lines = observed.lines
    return Variability(
        observed=observed,
        p=label_tests(labelled(lines), permutations).p,
        boards=_boards(observed, permutations),
        groups=_groups(observed, permutations),
        needed=boards_needed(observed) if observed.by == NETWORK else None,
    )


def labelled(lines: pd.DataFrame) -> LabelledValues:
    """Return lines of :attr:`Observed.lines` as tests take them, with rows and boards numbered anew."""
    row, first = np.unique(lines["row"].to_numpy(), return_index=True)
    order = np.argsort(lines["point"].to_numpy()[first], kind="stable")
    place = np.empty(len(row), dtype=np.intp)
    place[order] = np.arange(len(row))
    board = np.unique(lines["board"].to_numpy(), return_inverse=True)[1]
    return LabelledValues(
        values=lines["rd"].to_numpy(dtype=float),
        row=place[np.searchsorted(row, lines["row"].to_numpy())],
        board=board[first[order]],
        point=lines["point"].to_numpy()[first[order]],
    )


def against_others(observed: Observed, permutations: int | None = None) -> tuple[Floats, Floats]:
    """Return the statistic of each board against the others, and its p-value corrected by Holm's method.

    The board with the smallest p-value comes first.  One that stands out is left out before the others
    are tested again, so that no board is compared with it.  Two boards are compared once: they
    differ from each other.

    Returns
    -------
    distances, p : ndarray, [boards]
    """
    left = list(range(len(observed.boards)))
    distances, p, reached = np.zeros(len(left)), np.ones(len(left)), 0.0
    while len(left) > 1:
        tests = label_tests(labelled(observed.lines[observed.lines["board"].isin(left)]), permutations)
        comparisons = len(left) if len(left) > 2 else 1
        corrected = np.minimum(1, np.maximum(reached, tests.p_of_boards * comparisons))
        distances[left], p[left] = tests.distances, corrected
        if corrected.min() > LEVEL or comparisons == 1:
            break
        # Of equal p-values, which permutations cannot tell apart, the largest distance counts.
        furthest = int(np.lexsort((-tests.distances, corrected))[0])
        reached = float(corrected[furthest])
        del left[furthest]
    return distances, p


def holm(p: Iterable[float]) -> Floats:
    """Return p-values corrected for their number by Holm's method."""
    given = np.fromiter(p, dtype=float)
    order = np.argsort(given)
    corrected = np.empty(len(given))
    corrected[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1)))
    return corrected


def _boards(observed: Observed, permutations: int | None) -> tuple[BoardDifference, ...]:
    distances, p = against_others(observed, permutations)
    of_board = [lines for _, lines in observed.lines.groupby("board", sort=True)]
    medians = intervals.medians([lines["rd"].to_numpy(dtype=float) for lines in of_board]).tolist()
    return tuple(
        BoardDifference(
            board=name,
            points=int(lines["point"].nunique()),
            rows=int(lines["row"].nunique()),
            rd=(rd[0], rd[1], rd[2]),
            within=float((lines["rd"] - rd[0]).abs().median()),
            distance=float(distance),
            p=float(own),
        )
        for name, lines, rd, distance, own in zip(
            observed.boards, of_board, medians, distances, p, strict=True
        )
    )


def _groups(observed: Observed, permutations: int | None) -> tuple[GroupDifference, ...]:
    groups = [(str(name), lines) for name, lines in observed.lines.groupby("group", sort=False)]
    corrected = holm(label_tests(labelled(lines), permutations).p for _, lines in groups)
    found = [
        GroupDifference(
            group=name,
            points=int(lines["point"].nunique()),
            reference=float(lines["reference"].iloc[0]) if lines["item"].nunique() == 1 else np.nan,
            rd=lines.groupby("board", sort=True)["rd"].median().to_numpy(dtype=float),
            p=float(p),
        )
        for (name, lines), p in zip(groups, corrected, strict=True)
    ]
    return tuple(sorted(found, key=lambda each: (-each.apart, natural(each.group))))
