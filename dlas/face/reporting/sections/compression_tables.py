"""Tables of compression: the level to choose for each technique, and the storage of each network."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import pandas as pd

from dlas.analysis.matching import natural
from dlas.face.reporting.context import Context, significant
from dlas.face.tables.columns import NOTHING, cell_of, in_bytes
from dlas.face.tables.table import Cell, Column, Line, Table, numbers_of
from dlas.sweep.rows.columns import FINE_TUNING
from dlas.sweep.rows.labels import MISSING, amount, duration
from dlas.sweep.rows.trajectories import Trajectory, called

NETWORK = ("dataset", "model", "seed")
"""Columns that identify a dense network."""
FLOAT_BITS = 32
COUNTS = {
    "parameters": "parameters",
    "nonzeros": "nonzeros",
    "macs": "MACs",
    "effective_macs": "effective MACs",
}
Dense = Mapping[tuple[Any, ...], Mapping[Any, Any]]
"""Facts of the dense networks, by dataset, model and seed."""
Spans = Mapping[tuple[Any, ...], tuple[float, float]]
"""The least and the most of a quantity, by dataset, model, seed and compression."""


def by_network(dense: pd.DataFrame) -> Dense:
    """Return the facts of dense networks by dataset, model and seed."""
    return {tuple(row[name] for name in NETWORK): row for row in dense.to_dict("records")}


def accuracy_interval(accuracy: float, images: int | None) -> tuple[float | None, float | None]:
    """Return the Wilson score interval of level 0.95 of an accuracy on so many images, or None twice."""
    if not images or not 0 <= accuracy <= 1:
        return None, None
    # SciPy's would compute the p-value of a test beside it, which takes most of a millisecond.
    share, weight = round(accuracy * images) / images, NormalDist().inv_cdf(0.975) ** 2 / images
    middle = (share + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    return max(middle - reach, 0.0), min(middle + reach, 1.0)


def images(row: Mapping[Any, Any]) -> int | None:
    """Return the number of test images behind a network's accuracy."""
    return int(row["test_images"]) if pd.notna(row["test_images"]) else None


def drawn_percent(share: float | None) -> float | None:
    """Return a share in percent for a figure, rounded, or None."""
    return None if share is None else significant(100 * share)


def percent(share: float) -> str:
    """Return a share in percent, without the sign."""
    return f"{100 * share:.3g}"


def choice(context: Context, every: pd.DataFrame, curves: Sequence[Trajectory], dense: Dense) -> Table:
    """Return each model's accuracy and share removed at the level to choose of each technique."""
    keys = every[[*NETWORK]].itertuples(index=False, name=None)
    cells: dict[tuple[Any, ...], dict[str, Cell]] = {key: {} for key in keys}
    titles = called(curves)
    for curve in curves:
        cells[curve.network].setdefault(curve.technique, _pruned(curve))
    for row in every[every["bits"] > 0].to_dict("records"):
        cells[tuple(row[name] for name in NETWORK)][row["compression"]] = _typed(row)
    types = {name for row in cells.values() for name in row if name not in titles}
    techniques = [*sorted(titles, key=natural), *sorted(types, key=natural)]
    titled = (titles.get(name, name) for name in techniques)
    columns = [Column("network"), *numbers_of("parameters", "MACs", "dense", *titled)]
    lines = []
    for key, under in cells.items():
        values = dict(zip(NETWORK, key, strict=True))
        by_technique = [under.get(name, NOTHING) for name in techniques]
        first = Cell(context.called(values, NETWORK) if set(NETWORK) & set(context.varying) else key[1])
        lines.append(Line([first, *_dense(dense.get(key)), *by_technique], context.filters(values)))
    caption = (
        "Accuracy on test images, followed by the share of the convolutions' bits that is gone, at the "
        "elbow, or without one at the highest level within 1 point of the dense network on validation images."
    )
    return Table("compressed-networks", caption, columns, lines)


def _dense(facts: Mapping[Any, Any] | None) -> list[Cell]:
    """Return parameters, multiply-adds and accuracy of a dense network."""
    if facts is None:
        return [NOTHING] * 3
    counts = [cell_of(facts[name], amount) for name in ("parameters", "macs")]
    if pd.isna(facts["accuracy"]):
        return [*counts, NOTHING]
    low, high = accuracy_interval(facts["accuracy"], images(facts))
    note = f"[{100 * low:.2f}, {100 * high:.2f}]" if low is not None and high is not None else ""
    return [*counts, Cell(f"{100 * facts['accuracy']:.2f} %", note)]


def _pruned(curve: Trajectory) -> Cell:
    place, why = curve.chosen()
    if place is None:
        return Cell(MISSING, why, style="muted")
    step = curve.steps[place]
    note = f"{percent(step.ratio)} % gone, {why}"
    return Cell(f"{100 * step.accuracy:.2f} %", note, point=curve.lines.get(place))


def _typed(row: Mapping[Any, Any]) -> Cell:
    if pd.isna(row["accuracy"]):
        return Cell(MISSING, "no accuracy", style="muted")
    ratio = row["ratio"] if pd.notna(row["ratio"]) else 0.0
    gone = 1 - (1 - ratio) * row["bits"] / FLOAT_BITS
    return Cell(f"{100 * row['accuracy']:.2f} %", f"{percent(gone)} % gone", point=row["line"])


def storage(context: Context, every: pd.DataFrame) -> Table:
    """Return the storage of each network, dense and as CSR, and its number of multiply-adds.

    Parameters
    ----------
    every : DataFrame
        What :func:`dlas.analysis.observations.evidence.networks` returned.
    """
    sizes = ("bytes dense", "bytes as CSR", "CSR / dense", "bytes as packed")
    columns = [Column("network"), *numbers_of(*COUNTS.values(), *sizes, "fine-tuning")]
    packed = _packed(context.points)
    lines = [_line(context, row, packed) for row in every.to_dict("records")]
    return Table("storage", _caption(every), columns, lines)


def _packed(points: pd.DataFrame) -> Spans:
    """Return the least and most bytes that builds of a network store as weights, by its columns."""
    known = points.dropna(subset=["packed_bytes"])
    spans = known.groupby([*NETWORK, "compression"], dropna=False)["packed_bytes"].agg(["min", "max"])
    return {key: (float(least), float(most)) for key, least, most in spans.itertuples(name=None)}


def _caption(every: pd.DataFrame) -> str:
    sized = every.dropna(subset=["csr_bytes", "model_bytes"])
    caption = (
        "Storage and work of each network. Effective multiply-adds leave out those with a weight of zero; "
        "bytes as packed are those of the weights as the builds of the network store them, from the smallest "
        "to the largest build; fine-tuning is the time for all levels up to this one."
    )
    if sized.empty:
        return caption
    larger = int((sized["csr_bytes"] > sized["model_bytes"]).sum())
    return (
        f"{caption} With its indices counted, compressed sparse rows (CSR) take more bytes than dense "
        f"storage for {larger} of {len(sized)} networks."
    )


def _line(context: Context, row: Mapping[Any, Any], packed: Spans) -> Line:
    counts = [cell_of(row[name], amount) for name in COUNTS]
    dense, csr = row["model_bytes"], row["csr_bytes"]
    share = float(csr) / float(dense) if pd.notna(csr) and pd.notna(dense) and dense else None
    larger = share is not None and share > 1
    span = packed.get(tuple(row[name] for name in (*NETWORK, "compression")))
    cells = [
        Cell(context.called(row, (*NETWORK, "compression"))),
        *counts,
        cell_of(dense, in_bytes),
        Cell(in_bytes(csr), "larger", style="bad") if larger else cell_of(csr, in_bytes),
        cell_of(share, "{:.2f}".format),
        Cell(" to ".join(dict.fromkeys(amount(size, "B") for size in span)) if span else MISSING),
        cell_of(row[FINE_TUNING], duration),
    ]
    return Line(cells, context.filters({name: row[name] for name in (*NETWORK, "compression")}))
