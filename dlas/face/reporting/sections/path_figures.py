"""Figures of paths: what they save, which are worth taking at each batch size, and beside other networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import groups, natural, result_in
from dlas.analysis.pareto import undominated
from dlas.analysis.paths import (
    ALL,
    COMPRESSION,
    FEWEST,
    IN,
    NETWORK,
    OPEN,
    OUT,
    PATH,
    PLACE,
    legacy,
    places,
)
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Figure, Panel
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import NEUTRAL, SLOTS, colours, rgb

DEVICE = tuple(name for name in PLACE if name not in ("batch", "seed"))
"""Columns of a network on a device, whose batch sizes share a panel."""
LEGACY = "% of the path of zeros"
MEMBERS = {IN: "in the Pareto set", OPEN: "open", OUT: "not in it"}
STAGE, BASE = "compression.stage", "base"
ALIKE = ("dataset", "model", "task", "seed")
"""Columns of a network with all its compressions."""


def figures(context: Context, found: pd.DataFrame) -> list[Figure]:
    """Return the figures that these paths fill.

    Parameters
    ----------
    found : DataFrame
        What :func:`dlas.analysis.paths.paths_of` returned.
    """
    made = (
        _saved(context, found),
        _normalised(context, found),
        _by_batch(context, found),
        _beside_others(context, found),
    )
    return [figure for figure in made if figure.panels]


def called(context: Context, row: Any, names: Sequence[str]) -> str:
    """Return a place as text: its network, and the values of axes that vary."""
    others = context.called(row, [name for name in names if name != NETWORK])
    return " · ".join(piece for piece in (str(row[NETWORK]), others) if piece != "all")


# ---------------------------------------------------------------- as shares of the legacy network's


def _saved(context: Context, found: pd.DataFrame) -> Figure:
    """Return latency by multiply-adds, both as shares of the legacy network's, by network and device."""
    legend = _batches(found)
    spec = charts.scatter(f"multiply-adds, {LEGACY}", f"latency, {LEGACY}", legend, logarithmic=False)
    known = places(found)["correlation"].dropna()
    sentence = "Above the diagonal a path saves less time than multiply-adds."
    if (found["member"] == IN).any():
        sentence += " Large dots are in a Pareto set."
    if len(known):
        sentence += f" Rank correlations lie between {known.min():.2f} and {known.max():.2f}."
    panels = _panels(context, found, "macs_share", "latency_share")
    title = "Latency against multiply-adds, by batch"
    return Figure("paths", title, sentence, panels, {"": spec}, legend, across=3)


def _normalised(context: Context, found: pd.DataFrame) -> Figure:
    """Return accuracy by latency as a share of the legacy network's, by network and device."""
    legend = _batches(found)
    spec = charts.scatter(f"latency, {LEGACY}", "accuracy, %", legend, logarithmic=False)
    panels = _panels(context, found, "latency_share", "accuracy")
    sentence = (
        "Latencies are shares of that of the path of zeros, the network itself, with the same batch: were "
        "time saved alike with every batch, the dots of a path would coincide. "
        "Large dots are in a Pareto set."
    )
    title = "Accuracy against the time that a path leaves, by batch"
    return Figure("paths-normalised", title, sentence, panels, {"": spec}, legend, across=3)


def _panels(context: Context, found: pd.DataFrame, x: str, y: str) -> list[Panel]:
    """Return two shares of each path by network and device; none without the legacy network's own."""
    panels = []
    for inside in groups(found, DEVICE):
        rows: list[dict[str, Any]] = []
        block = found.iloc[inside]
        for lines in groups(block, ("batch", "seed")):
            shares = _shares(block.iloc[lines]).dropna(subset=[x, y]).sort_values(x, kind="stable")
            rows += [_mark(line, row, x, y) for line, row in shares.iterrows()]
        if rows:
            panels.append(Panel(called(context, block.iloc[0], DEVICE), rows))
    return panels


def _shares(inside: pd.DataFrame) -> pd.DataFrame:
    """Return a place's paths with percentages: of the legacy network's, and of images that are right."""
    whole = legacy(inside)
    numbers = {name: inside[name].to_numpy(dtype=float, na_value=np.nan) for name in ("macs", "latency_s")}
    own = {name: float(whole[name].iloc[0]) if len(whole) else np.nan for name in numbers}
    return inside.assign(
        macs_share=100 * numbers["macs"] / own["macs"],
        latency_share=100 * numbers["latency_s"] / own["latency_s"],
        accuracy=_percent(inside),
    )


def _mark(line: Any, row: Any, x: str, y: str) -> dict[str, Any]:
    return {
        "p": int(line),
        "x": significant(row[x]),
        "y": significant(row[y]),
        "f": row["member"] == IN,
        "fy": None,
        "c": f"batch {row['batch']}",
        "t": f"path {row[PATH]}",
    }


def _batches(found: pd.DataFrame) -> dict[str, str]:
    batches = sorted({str(batch) for batch in found["batch"]}, key=natural)
    return {f"batch {batch}": rgb(*SLOTS[number % len(SLOTS)]) for number, batch in enumerate(batches)}


# ---------------------------------------------------------------- one place, and other networks


def _by_batch(context: Context, found: pd.DataFrame) -> Figure:
    """Return accuracy by latency with its interval, a panel a place, the paths worth taking by name."""
    hues = (rgb(*SLOTS[0]), rgb(*SLOTS[1]), rgb(*NEUTRAL))
    legend = dict(zip(MEMBERS.values(), hues, strict=True))
    spec = charts.scatter("latency, ms", "accuracy, %", legend, logarithmic=False, labelled=True)
    panels = []
    for inside in groups(found, PLACE):
        block = found.iloc[inside]
        ordered = block.assign(accuracy=_percent(block)).dropna(subset=["accuracy"]).sort_values("latency_s")
        if len(ordered) >= FEWEST:
            rows = [_named(line, row) for line, row in ordered.iterrows()]
            panels.append(Panel(called(context, block.iloc[0], PLACE), rows))
    panels.sort(key=lambda panel: natural(panel.title))
    sentence = (
        "Bars are 95 % intervals. Large dots on the line are surely in the Pareto set of their panel; where "
        "intervals overlap, that is open. A path takes the shallow phase for each 1."
    )
    title = "Accuracy against latency, by place"
    return Figure("paths-by-place", title, sentence, panels, {"": spec}, legend, across=4)


def _named(line: Any, row: Any) -> dict[str, Any]:
    member, accuracy = row["member"], significant(row["accuracy"])
    return {
        "p": int(line),
        "x": significant(1e3 * row["latency_s"]),
        "lo": significant(1e3 * row["latency_low_s"]),
        "hi": significant(1e3 * row["latency_high_s"]),
        "y": accuracy,
        "f": member == IN,
        "fy": accuracy if member == IN else None,
        "c": MEMBERS[member],
        "l": "" if member == OUT else row[PATH],
        "t": f"path {row[PATH]}",
    }


def _beside_others(context: Context, found: pd.DataFrame) -> Figure:
    """Return accuracy by multiply-adds of all paths, and of the same model under other compressions."""
    networks = _networks(context.points)
    legend = colours("compression", networks["series"])
    x = "multiply-adds with weights other than zero, millions"
    spec = charts.scatter(x, "accuracy, %", legend, logarithmic=False, labelled=True)
    panels = []
    for inside in groups(networks, ALIKE):
        block = networks.iloc[inside].sort_values("cost", kind="stable")
        if block[PATH].ne("").sum() >= FEWEST:
            panels.append(Panel(_alike(context, block.iloc[0]), _beside(block)))
    sentence = (
        "Each dot is a network: a path after a stage of its training, or the same model under another "
        "compression. Large dots on the line are the Pareto set of all of them, paths by name."
    )
    title = "Accuracy against multiply-adds, beside other compressions"
    return Figure(
        "paths-beside-others", title, sentence, panels, {"": spec}, legend, filtered=False, across=3
    )


def _networks(points: pd.DataFrame) -> pd.DataFrame:
    """Return one line a network with its accuracy, ``cost``, ``series``, and ``path``, empty without one."""
    macs = points["effective_macs"].fillna(points["macs"]).to_numpy(dtype=float, na_value=np.nan)
    leaf = points["compression_name"].eq(COMPRESSION).fillna(False).astype(bool)
    path = points["compression.path"].where(leaf, "").astype(str)
    stage = points[STAGE].fillna(BASE) if STAGE in points else BASE
    series = points["compression_name"].astype(str).where(~leaf, COMPRESSION + "(" + stage + ")")
    networks = points.assign(path=path, series=series, accuracy=_percent(points), cost=1e-6 * macs)
    known = networks[result_in(networks, "accuracy") & (path != ALL)].dropna(subset=["cost"])
    return known.drop_duplicates([*ALIKE, "compression"])


def _beside(block: pd.DataFrame) -> list[dict[str, Any]]:
    best = undominated(block["cost"].to_numpy(), block["accuracy"].to_numpy())
    return [
        {
            "p": line,
            "x": significant(row["cost"]),
            "lo": significant(row["cost"]),
            "hi": significant(row["cost"]),
            "y": significant(row["accuracy"]),
            "f": bool(kept),
            "fy": significant(row["accuracy"]) if kept else None,
            "c": row["series"],
            "l": row[PATH] if kept else "",
            "t": f"{row['compression']}: {row['accuracy']:.2f} %",
        }
        for line, row, kept in zip(block.index.tolist(), block.to_dict("records"), best, strict=True)
    ]


def _alike(context: Context, row: Any) -> str:
    return " · ".join(
        dict.fromkeys(
            piece for piece in (str(row["model"]), context.called(row, ALIKE)) if piece not in ("all", "")
        )
    )


def _percent(points: pd.DataFrame) -> np.ndarray:
    return 100 * points["accuracy"].to_numpy(dtype=float, na_value=np.nan)
