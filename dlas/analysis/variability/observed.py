"""What boards measured of the same points, relative to the median of their medians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dlas.analysis.variability.boards import ToldBy, boards_of
from dlas.errors import InputError, listed, unknown
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.operators import class_of

LATENCY = "latency_s"
TARGETS = (LATENCY, "energy_j", "power_w")
"""Quantities that boards are compared by."""
NETWORK, KERNEL = "network", "kernel"
KINDS = (NETWORK, KERNEL)
"""What boards are compared on: whole networks, or their kernels by class of operator."""
POINT = ["id", "hardware"]
"""Columns of a point, with the threads that its hardware used."""
ADDED = (LATENCY, "energy_j")
"""Those of kernels: what all kernels of a class take adds up."""
MOST_NAMED = 13
"""Most boards that a message names."""


@dataclass(frozen=True)
class Observed:
    """What several boards measured of the points that all of them have."""

    boards: tuple[str, ...]
    """Names, sorted."""
    told_by: ToldBy
    target: str
    by: str
    """One of :data:`KINDS`."""
    lines: pd.DataFrame
    """A line for each row, and by kernel for each class of kernels in it, in the order of points.

    ============= =================================================================
    ``row``       number of the row
    ``point``     number of the point
    ``item``      number of what is compared: the point, or a class of kernels in it
    ``group``     the network, or the class
    ``hardware``  the hardware's label
    ``board``     place in ``boards``
    ``value``     the row's value: the median of its samples
    ``samples``   ndarray of them
    ``reference`` the item's median over boards of each board's median
    ``rd``        relative difference of ``value`` from it, as a fraction
    ============= =================================================================
    """
    left_out: int
    """Points that not every board has."""

    @property
    def points(self) -> int:
        """Number of points that are compared."""
        return int(self.lines["point"].nunique())

    @property
    def has_runs(self) -> bool:
        """Whether any board has several rows of a point."""
        return bool(self.lines.duplicated(["item", "board"]).any())


def observe(
    rows: pd.DataFrame, target: str = LATENCY, by: str = NETWORK, layers: pd.DataFrame | None = None
) -> Observed:
    """Return what the boards in the rows measured of the same points.

    Parameters
    ----------
    rows : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    target : str
        One of :data:`TARGETS`.
    by : str
        One of :data:`KINDS`.
    layers : DataFrame, optional
        The layers of the same folders, needed by kernel.

    Raises
    ------
    InputError
        If there is no such target or kind, no row has the quantity, the rows are of one board, or no
        point is on all boards.

    References
    ----------
    MIRAGE, section 3.1.
    """
    check(target, by)
    usable = _measured(rows, target)
    boards = boards_of(usable)
    values = _of_networks(usable, target) if by == NETWORK else _of_kernels(usable, target, layers)
    if values.empty:
        raise InputError(
            f"no kernel of these rows has {target}: without `by={KERNEL!r}` networks are compared"
        )
    lines = values.assign(board=boards.of[values["row"]].to_numpy())
    lines = lines[lines["board"].notna()]
    complete = _complete(lines, boards.of.nunique())
    if not complete.any():
        raise InputError(_nothing_common(lines, boards.of.nunique()))
    names = tuple(sorted(map(str, lines["board"].unique())))
    left_out = int(lines["point"].nunique() - lines.loc[complete, "point"].nunique())
    return Observed(names, boards.told_by, target, by, _compared(lines[complete], names), left_out)


def check(target: str, by: str) -> None:
    """Check that boards can be compared by a quantity and on a kind.

    Raises
    ------
    InputError
        If there is none of that name, or kernels do not have the quantity.
    """
    if target not in TARGETS:
        raise unknown("`target=`", target, TARGETS)
    if by not in KINDS:
        raise unknown("`by=`", by, KINDS)
    if by == KERNEL and target not in ADDED:
        raise InputError(
            f"`target={target!r}` is of whole networks: expected {' or '.join(ADDED)} by {KERNEL}"
        )


def _measured(rows: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return the rows with the quantity, each measurement once, with numbers for the rows and points."""
    has = rows["status"].eq("ok") & rows[target].gt(0) if target in rows else pd.Series(False, rows.index)
    if not has.any():
        raise InputError(f"no row has {target}, so that boards cannot be compared by it")
    found = rows[has].sort_values([*POINT, "folder"], kind="stable")
    copies = found["started"].notna() & found.duplicated([*POINT, "started", target, "instance", "machine"])
    found = found[~copies].reset_index(drop=True)
    return found.assign(point=found.groupby(POINT, dropna=False, sort=False).ngroup())


def _of_networks(usable: pd.DataFrame, target: str) -> pd.DataFrame:
    """Return a line for each row: its value, and its samples where it has some."""
    values = usable[target].astype(float)
    samples = usable[SAMPLES] if target == LATENCY else [()] * len(usable)
    return pd.DataFrame(
        {
            "row": np.arange(len(usable)),
            "point": usable["point"],
            "item": usable["point"],
            "group": usable["model"].astype("string"),
            "hardware": usable["hardware"].astype("string"),
            "value": values,
            "samples": [
                np.asarray(own) if len(own) else np.array([value])
                for own, value in zip(samples, values, strict=True)
            ],
        }
    )


def _of_kernels(usable: pd.DataFrame, target: str, layers: pd.DataFrame | None) -> pd.DataFrame:
    """Return a line for each row and class of kernels: what all kernels of the class took."""
    if layers is None or target not in layers:
        return pd.DataFrame(columns=["row"])
    timed = layers[layers[target].gt(0)]
    shapes = ["operator", "groups", "c", "r", "s"]
    numbers = timed.groupby(shapes, dropna=False).ngroup()
    classes = {
        number: _class(timed.loc[lines[0], shapes])
        for number, lines in numbers.groupby(numbers).groups.items()
    }
    named = timed[["folder", "id", target]].assign(group=numbers.map(classes))
    sums = named.groupby(["folder", "id", "group"])[target].sum().rename("value").reset_index()
    rows = usable[["folder", "id", "point", "hardware"]].assign(row=np.arange(len(usable)))
    lines = rows.merge(sums, on=["folder", "id"]).astype({"value": float})
    lines["item"] = lines.groupby(["point", "group"], sort=False).ngroup()
    return lines.assign(samples=pd.Series([np.array([value]) for value in lines["value"]], dtype=object))


def _class(shape: pd.Series) -> str:
    """Return the class of layers that agree in what decides it."""
    return class_of({str(name): None if pd.isna(value) else value for name, value in shape.items()})


def _complete(lines: pd.DataFrame, boards: int) -> pd.Series:
    """Return which lines are of what every board has, and every row of the point."""
    of_item, of_point = lines.groupby("item"), lines.groupby("point")
    everywhere = of_item["row"].transform("nunique") == of_point["row"].transform("nunique")
    return everywhere & (of_item["board"].transform("nunique") == boards)


def _compared(lines: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return lines with the median of medians, and their relative differences from it."""
    of_board = lines.groupby(["item", "board"], sort=False)["value"].median()
    reference = lines["item"].map(of_board.groupby("item").median()).astype(float)
    places = {name: place for place, name in enumerate(names)}
    found = lines.assign(
        reference=reference, rd=lines["value"] / reference - 1, board=lines["board"].map(places).astype(int)
    )
    return found.sort_values(["point", "row", "item"], kind="stable").reset_index(drop=True)


def _nothing_common(lines: pd.DataFrame, boards: int) -> str:
    counts = lines.groupby("board")["point"].nunique()
    told = listed([f"{board}: {count:,}" for board, count in counts.items()], MOST_NAMED)
    return f"no point was measured on all {boards} boards (points with a result: {told})"
