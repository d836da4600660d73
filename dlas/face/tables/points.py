"""The table of a sweep: all points, the fastest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.text import Text

from dlas.analysis.matching import SETTING_OF_SEEDS, statuses_with, timed
from dlas.analysis.repeats import merge_repeats
from dlas.errors import unknown
from dlas.face.tables.columns import NOTHING, Strip, cell_of, in_bytes, maybe, names, numbers, table_of
from dlas.face.tables.marks import (
    COLOURS,
    NOISY,
    PREDICTED_MARK,
    SIMULATED_MARK,
    SIMULATED_MEANS,
    THROTTLED,
    UNSTABLE_MARK,
    Notes,
    first_shown,
    shared_values,
)
from dlas.face.tables.table import Cell
from dlas.face.tables.text import Grid
from dlas.prediction.learning.intervals import LEVEL as INTERVAL_LEVEL
from dlas.sweep.rows.columns import AXES
from dlas.sweep.rows.frame import select
from dlas.sweep.rows.labels import (
    PARTLY_MEANS,
    amount,
    coverage_mark,
    duration,
    factor,
    interval_ms,
    points,
    short_id,
)
from dlas.sweep.rows.machines import names_simulated
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.rows.results import COMPLETED, STATUSES, UNSTABLE
from dlas.sweep.rows.short_labels import with_short_labels

MOST_LINES = 1000
"""Most lines that commands print unless they are asked for all."""
GROUP = SETTING_OF_SEEDS
"""Columns that the points of a group share; times are relative to the group's fastest."""
Record = Mapping[Any, Any]
"""A line of the frame."""
NAMES = (*GROUP, "compression", "algorithm", "compiler", "seed")


@dataclass(frozen=True)
class Quantity:
    """A column of a measured quantity."""

    header: str
    column: str
    """Of the frame."""
    shown: Callable[[Any], str]
    """Formats a value of the frame."""
    drop: int
    """As in :class:`dlas.face.tables.table.Column`."""
    always: bool = True
    """Whether it is shown even if it is the same in all rows."""


QUANTITIES = (
    Quantity("runs", "runs", str, drop=5, always=False),
    Quantity("acc. %", "accuracy", lambda value: f"{100 * value:.2f}", drop=1),
    Quantity("error", "error", lambda value: f"{value:.1e}", drop=3),
    Quantity("agrees %", "agreement", lambda value: f"{100 * value:.2f}", drop=6, always=False),
    Quantity("memory", "peak_memory_bytes", in_bytes, drop=2),
    Quantity("energy", "energy_j", lambda value: amount(value, "J"), drop=4),
    Quantity("power", "power_w", lambda value: amount(value, "W"), drop=5),
    Quantity("trials", "trials", lambda value: f"{value:,.0f}", drop=6),
    Quantity("search", "search_s", duration, drop=4),
    Quantity("pruned %", "ratio", lambda value: f"{100 * value:.1f}", drop=2),
    Quantity("nonzeros", "nonzeros", amount, drop=8, always=False),
    Quantity("size", "model_bytes", in_bytes, drop=5, always=False),
    Quantity("as packed", "packed_bytes", in_bytes, drop=6, always=False),
    Quantity("as CSR", "csr_bytes", in_bytes, drop=7, always=False),
    Quantity("parameters", "parameters", amount, drop=9, always=False),
    Quantity("MACs", "macs", amount, drop=6, always=False),
    Quantity("effective MACs", "effective_macs", amount, drop=8, always=False),
)
SORTS = {
    "latency": "latency_s",
    "accuracy": "accuracy",
    "error": "error",
    "memory": "peak_memory_bytes",
    "energy": "energy_j",
    "power": "power_w",
    "size": "model_bytes",
    "packed": "packed_bytes",
    "csr": "csr_bytes",
    "macs": "macs",
    "ratio": "ratio",
    "time": "started",
}
"""Columns by the names that ``sort`` takes besides the axes; accuracy descends, the others ascend."""


def table(
    frame: pd.DataFrame, where: Sequence[str] = (), sort: str = "latency", most: int | None = None
) -> Grid:
    """Return the table of all points, repeats merged by :func:`dlas.analysis.repeats.merge_repeats`.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    where : sequence of str
        Filters, ``axis=pattern``.
    sort : str
        Order within a group: one of :data:`SORTS`, or an axis.
    most : int, optional
        Most lines to show; by default all.

    Returns
    -------
    Grid
        To be printed.  Axes and options that do not vary are named above it, and the
        reasons of points that are not ``ok`` below.

    Raises
    ------
    InputError
        If a filter or ``sort`` names an unknown axis, column or value.
    """
    every = merge_repeats(frame)
    chosen, left_out = with_short_labels(select(every, where))
    lines = ordered(chosen, sort)
    varying, constants = _split_names(lines)
    notes, shown = Notes(), lines.head(len(lines) if most is None else most)
    strips = [_names(shown, name) for name in varying] + _outcomes(shown, notes) + _quantities(shown)
    strips.append(numbers("id", map(short_id, shown["id"]), drop=1))
    groups = shown["group_number"].tolist()
    last = {at for at in range(len(groups) - 1) if groups[at] != groups[at + 1]}
    below = [*first_shown(len(shown), len(lines), "lines"), _counts(lines), *_predictions(lines)]
    below += [*_partly(lines), *_simulated(lines), *_repeats(lines)]
    below += notes.lines()
    same = shared_values({name: lines[name].iloc[0] for name in constants} if len(lines) else {})
    above = _headline(every, lines, "; ".join(filter(None, (same, str(left_out)))))
    return Grid(table_of(strips, "points", last=last), above, below)


def ordered(points: pd.DataFrame, sort: str = "latency") -> pd.DataFrame:
    """Return the lines of :func:`table` in its order, with the number of their group and ``relative``.

    Raises
    ------
    InputError
        If ``sort`` names an unknown column.
    """
    return _sorted(points.assign(relative=relative_to_fastest(points)), sort)


def relative_to_fastest(frame: pd.DataFrame) -> pd.Series:
    """Return each row's speed over that of its group's fastest; NaN where it has no time or it is unstable.

    A group has the same dataset, model, batch, task, hardware and machine, and any
    compression, algorithm and compiler.
    """
    latency = frame["latency_s"].where(timed(frame))
    return latency.groupby([frame[name] for name in GROUP], dropna=False).transform("min") / latency


def _sorted(frame: pd.DataFrame, sort: str) -> pd.DataFrame:
    """Return the rows by group in order of appearance, those with a result first, then by ``sort``."""
    if sort not in SORTS and sort not in AXES:
        raise unknown("column to sort by", sort, (*SORTS, *AXES))
    keys, column = [frame[name] for name in GROUP], SORTS.get(sort, sort)
    grouped = frame.assign(
        group_number=frame.groupby(keys, dropna=False, sort=False).ngroup(),
        bad=~frame["status"].isin(statuses_with(column)),
    )
    order = ["group_number", "bad", column]
    return grouped.sort_values(order, ascending=[True, True, sort != "accuracy"], kind="stable")


def _split_names(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the columns of names that vary, and those that do not."""
    varies = {name: frame[name].nunique(dropna=False) > 1 for name in (*NAMES, "study", "folder")}
    shown = [name for name in NAMES if varies[name]]
    if (frame["runs"] > 1).any():
        pass  # a point of several folders has no single name among them
    elif varies["study"] and frame["study"].nunique() >= frame["folder"].nunique():
        shown.insert(0, "study")
    elif varies["folder"]:
        shown.insert(0, "folder")
    # A single point needs a name, too.
    shown = shown or ["model"]
    return shown, [name for name in NAMES if not varies[name] and name not in shown]


def _names(frame: pd.DataFrame, name: str) -> Strip:
    return names(name, [maybe(value, str) for value in frame[name]], shared=name in GROUP)


def _outcomes(frame: pd.DataFrame, notes: Notes) -> list[Strip]:
    """Return the columns of status, latency and speed."""
    rows = frame.to_dict("records")
    return [
        numbers("status", [_status(row, notes) for row in rows]),
        numbers("ms [95 % interval]", [_latency(row) for row in rows]),
        numbers("as the fastest", [_speed(row) for row in rows], "times as fast"),
    ]


def _status(row: Record, notes: Notes) -> Cell:
    status = row["status"]
    return Cell(notes.mark(status, None if status == "ok" else maybe(row["reason"], str)), style=status)


def _latency(row: Record) -> Cell:
    if row["status"] not in (*COMPLETED, PREDICTED) or pd.isna(row["latency_s"]):
        return NOTHING
    text = interval_ms(row["latency_s"], row["latency_low_s"], row["latency_high_s"])
    if row["status"] == PREDICTED:
        return Cell(text + PREDICTED_MARK, style=PREDICTED)
    doubt = UNSTABLE_MARK if row["status"] == UNSTABLE else NOISY if _is(row["noisy"]) else ""
    held = THROTTLED if _is(row["throttled"]) else ""
    told = SIMULATED_MARK if names_simulated(row["machine"]) else ""
    return Cell(text + doubt + held + told + coverage_mark(row["coverage"]))


def _is(value: Any) -> bool:
    """Return whether a value is known to be true."""
    return bool(pd.notna(value) and value)


def _speed(row: Record) -> Cell:
    if row["status"] != "ok" or pd.isna(row["latency_s"]):
        return NOTHING
    return Cell(factor(row["relative"]), style="best" if row["relative"] == 1 else "")


def _quantities(frame: pd.DataFrame) -> list[Strip]:
    """Return a column for each quantity that any row has."""
    strips = []
    for quantity in QUANTITIES:
        values = frame[quantity.column]
        if values.notna().any() and (quantity.always or values.nunique() > 1):
            cells = [cell_of(value, quantity.shown) for value in values]
            strips.append(numbers(quantity.header, cells, drop=quantity.drop))
    return strips


def _headline(frame: pd.DataFrame, shown: pd.DataFrame, same: str) -> list[Text]:
    if frame.empty:
        return [Text("no rows yet", style="bold")]
    studies = ", ".join(sorted(frame["study"].dropna().unique())) or "no study"
    count = points(len(frame)) if len(shown) == len(frame) else f"{len(shown):,} of {points(len(frame))}"
    lines = [Text(f"{studies}: {count}", style="bold")]
    return [*lines, Text(f"all: {same}")] if same else lines


def _partly(frame: pd.DataFrame) -> Iterator[Text]:
    """Yield what the mark of partial coverage means, where a point has it."""
    if (frame["coverage"].lt(1) & frame["status"].isin(COMPLETED)).any():
        yield Text(PARTLY_MEANS)


def _simulated(frame: pd.DataFrame) -> Iterator[Text]:
    """Yield what the mark of simulated times means, where a point has one."""
    count = sum(map(names_simulated, frame["machine"]))
    if count:
        yield Text(f"{points(count)} ({SIMULATED_MARK}): {SIMULATED_MEANS}")


def _predictions(frame: pd.DataFrame) -> Iterator[Text]:
    """Yield what the mark of predicted times means, where a point has one."""
    predicted = frame["status"].eq(PREDICTED) & frame["latency_s"].notna()
    if predicted.any():
        told = f"{PREDICTED_MARK} was predicted and not measured, and is compared with nothing"
        if frame.loc[predicted, "latency_low_s"].notna().any():
            told += f"; its interval is meant to hold {INTERVAL_LEVEL:.0%} of measurements"
        yield Text(told)


def _repeats(frame: pd.DataFrame) -> Iterator[Text]:
    """Yield how many points have several runs, and how far these are apart."""
    spread = frame["spread"].dropna()
    if len(spread):
        apart = f"their medians differ by {spread.median():.1%} (median), at most {spread.max():.1%}"
        yield Text(f"{points(len(spread))} in several folders: the samples of all runs count; {apart}")


def _counts(frame: pd.DataFrame) -> Text:
    """Return the number of points by status, of noisy and of throttled ones."""
    counts = frame["status"].value_counts()
    text = Text(f"{points(len(frame))}: ")
    pieces = [
        Text(f"{counts[status]:,} {status}", COLOURS[status])
        for status in (*STATUSES, PREDICTED)
        if status in counts
    ]
    text.append_text(Text(", ").join(pieces or [Text("nothing has been run")]))
    if UNSTABLE in counts:
        text.append(f" ({UNSTABLE_MARK}: no result, left out of every comparison)")
    for column, mark in (("noisy", NOISY), ("throttled", THROTTLED)):
        marked = int((frame[column].fillna(False) & (frame["status"] == "ok")).sum())
        text.append(f"; {marked:,} {column} ({mark})" if marked else "")
    return text
