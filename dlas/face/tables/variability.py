"""How boards alike differ, as tables: each board against the others, and all of them on each network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from dlas.analysis.variability.boards import IN_WORDS
from dlas.analysis.variability.observed import LATENCY
from dlas.analysis.variability.power import DIFFERENCE, MOST_BOARDS, POWER, BoardsNeeded
from dlas.analysis.variability.variability import (
    ALIKE,
    HIGHER,
    LOWER,
    BoardDifference,
    GroupDifference,
    Variability,
)
from dlas.face.tables.columns import cell_of, digits, maybe, names, numbers, signed, table_of
from dlas.face.tables.marks import first_shown
from dlas.face.tables.table import Cell, Table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import listed, number_of, points, shown_in

OF_TIME = {HIGHER: "slower", LOWER: "faster"}
"""Verdicts on times."""
STYLES = {HIGHER: "bad", LOWER: "good", ALIKE: "muted"}
MOST_GROUPS = 20
"""Most networks that are shown, those whose boards are furthest apart."""


def listing(found: Variability, every: bool = False) -> RenderableType:
    """Return both tables, with what was compared above and what follows below.

    Parameters
    ----------
    every : bool
        Show all networks, also where there are very many.
    """
    most = len(found.groups) if every else MOST_GROUPS
    fewer = first_shown(min(most, len(found.groups)), len(found.groups), f"{found.observed.by}s")
    above = [Text(heading(found), style="bold"), *map(Text, statements(found))]
    below = [*fewer, *map(Text, conclusions(found))]
    return Group(Grid(of_boards(found), above), Text(), Grid(of_groups(found, most), below=below))


def of_boards(found: Variability) -> Table:
    """Return a line for each board, the one that differs most first."""
    boards = sorted(found.boards, key=lambda each: (not each.stands_out, -abs(each.rd[0])))
    strips = [
        names("board", [each.board for each in boards]),
        numbers("points", [f"{each.points:,}" for each in boards], drop=2),
        numbers("RD [95 % interval]", [_interval(each) for each in boards]),
        numbers("within", [f"{each.within:.1%}" for each in boards], drop=1),
        numbers("KS distance", [f"{each.distance:.2f}" for each in boards], drop=1),
        numbers("p (Holm)", [digits_of_p(each.p) for each in boards]),
        names("", [Cell(in_words(found, each), style=STYLES.get(each.verdict, "tie")) for each in boards]),
    ]
    caption = (
        "RD: median over a board's rows of their relative difference from the median over boards of boards' "
        "medians; within: the median distance of its rows from that. KS: Kolmogorov-Smirnov distance from "
        "all boards that do not stand out. p is that over labels permuted within points."
    )
    return table_of(strips, f"boards-{_stem(found)}", caption)


def of_groups(found: Variability, most: int | None = None) -> Table:
    """Return a line for each network or class of kernels, those whose boards are furthest apart first."""
    groups, boards = found.groups[:most], found.observed.boards
    word, unit, times = shown_in(found.observed.target)
    strips = [
        names(found.observed.by, [each.group for each in groups]),
        numbers("points", [f"{each.points:,}" for each in groups], drop=2),
        numbers(f"{word}, {unit or 'W'}", [cell_of(_scaled(each, times), digits) for each in groups], drop=3),
        names("lowest", [_extreme(each, boards, int(each.rd.argmin())) for each in groups]),
        names("highest", [_extreme(each, boards, int(each.rd.argmax())) for each in groups]),
        numbers("apart", [f"{each.apart:.1%}" for each in groups]),
        numbers("p (AD, Holm)", [digits_of_p(each.p) for each in groups]),
    ]
    if all(np.isnan(each.reference) for each in groups):
        del strips[2]
    caption = (
        "Median relative differences of the lowest and the highest board, and how far these are apart. AD: "
        "k-sample Anderson-Darling test of whether all boards are alike there."
    )
    return table_of(strips, f"boards-{_stem(found)}-by-{found.observed.by}", caption)


def heading(found: Variability) -> str:
    """Return what was compared."""
    observed = found.observed
    word, boards = shown_in(observed.target)[0], len(observed.boards)
    return f"{word} of {boards} boards on {points(observed.points)}, by {observed.by}"


def statements(found: Variability) -> Iterator[str]:
    """Yield what tells boards apart, what is left out, and what the tests exchange."""
    observed = found.observed
    yield f"boards are told apart by {IN_WORDS[observed.told_by]}"
    if observed.left_out:
        yield f"{points(observed.left_out)} left out: not measured on every board"
    yield (
        "RD: relative difference from the median of the boards' medians; p: over labels permuted within "
        "points, all values of a row together"
    )


def conclusions(found: Variability) -> Iterator[str]:
    """Yield whether boards are alike, which stand out, and how many it takes to see a small difference."""
    observed = found.observed
    yield f"all boards alike: p = {digits_of_p(found.p)} (k-sample Anderson-Darling)"
    yield standing_out(found)
    if found.outstanding and observed.told_by != "folder" and not observed.has_runs:
        yield (
            "each board was measured in one run, so that what differs may be the run: measure again into "
            "another folder, and give both"
        )
    if found.needed is not None:
        yield from _needed(found.needed)


def standing_out(found: Variability) -> str:
    """Return which boards stand out, with their differences, as a sentence without its end."""
    if len(found.boards) == 2 and found.outstanding:
        first = found.outstanding[0]
        apart = abs(found.boards[0].rd[0] - found.boards[1].rd[0])
        return (
            f"the two differ by {apart:.1%}: {first.board} is {in_words(found, first)}; which of them is "
            "unusual takes a third"
        )
    if not found.outstanding:
        return "no board stands out" if len(found.boards) > 2 else "the two boards do not differ"
    told = [
        f"{each.board} ({in_words(found, each)}: {_interval(each)}, p = {digits_of_p(each.p)})"
        for each in found.outstanding
    ]
    return f"stands out: {listed(told)}"


def in_words(found: Variability, board: BoardDifference) -> str:
    """Return the verdict on a board: of times it is slower or faster."""
    verdict = board.verdict
    return OF_TIME.get(verdict, verdict) if found.observed.target == LATENCY else verdict


def digits_of_p(p: float) -> str:
    """Return a p-value with two digits."""
    return f"{p:.2g}"


def _needed(needed: BoardsNeeded) -> Iterator[str]:
    yield (
        f"standard deviation between boards {needed.between:.1%}, of a row around its board "
        f"{maybe(needed.within, '{:.1%}'.format)}"
    )
    told = [
        f"{_count(count)} {where}"
        for count, where in (
            (needed.groups, "in each of two groups of different boards"),
            (needed.paired, "where each is measured before and after"),
        )
    ]
    yield (
        f"to see a difference of {DIFFERENCE:.0%} with {POWER:.0%} power on {points(needed.points)} takes "
        f"{listed(told)}"
    )


def _count(boards: float) -> str:
    if np.isnan(boards):
        return "an unknown number of boards"
    return number_of(int(boards), "board") if np.isfinite(boards) else f"more than {MOST_BOARDS:,} boards"


def _interval(board: BoardDifference) -> str:
    return "{} [{}, {}]".format(*map(signed, board.rd))


def _stem(found: Variability) -> str:
    """Return the quantity's name without its unit, for names of files."""
    return found.observed.target.rpartition("_")[0]


def _scaled(group: GroupDifference, times: float) -> float:
    return group.reference * times


def _extreme(group: GroupDifference, boards: tuple[str, ...], place: int) -> str:
    return f"{boards[place]} {signed(float(group.rd[place]))}"
