"""Latency and energy over clock settings, a line for each network: what another clock costs and saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlas.analysis.matching import groups
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant
from dlas.stack.types import Floats
from dlas.sweep.rows.columns import MACHINE

CLOCKS = {"hardware.cpu_hz": "CPU", "hardware.gpu_hz": "GPU", "hardware.memory_hz": "memory"}
"""Columns of requested clocks, and what they are called."""
ALIKE = ("dataset", MACHINE, "batch", "task", "seed", "compression", "algorithm", "compiler")
PANEL = (*ALIKE, "hardware_name", "threads")
"""What the lines of a panel have in common, besides their clocks; its title is of the first ones."""
FEWEST = 2
"""Settings that a line takes at least."""
MOST_LINES = 6
"""Most networks of a panel."""
GHZ = 1e9


class OverClocks(NamedTuple):
    """A quantity of a figure, with its unit and the factor to it."""

    column: str
    word: str
    unit: str
    times: float


QUANTITIES = (OverClocks("latency_s", "Latency", "ms", 1e3), OverClocks("energy_j", "Energy", "mJ", 1e3))


def section(context: Context) -> Section | Absent:
    """Return the figures of latency and of energy over clock settings.

    References
    ----------
    MIRAGE, section 2.1 and Figure 1.
    """
    title = "By clock"
    settings = _settings(context.points)
    figures = [figure for quantity in QUANTITIES if (figure := _figure(context, settings, quantity)).panels]
    if not figures:
        return Absent(title, f"points that differ in nothing but their clocks, at {FEWEST} settings or more")
    lead = (
        "Each line is one network, its dots are clock settings as they were requested: over the clock where "
        "one varies, else numbered in the order of the clocks of CPU, GPU and memory."
    )
    return Section("clocks", title, lead, figures)


def _settings(points: pd.DataFrame) -> pd.DataFrame:
    """Return the clocks of each point in Hz, NaN where its device decides them."""
    return pd.DataFrame(
        {name: pd.to_numeric(points[name], errors="coerce") if name in points else np.nan for name in CLOCKS},
        index=points.index,
        dtype=float,
    )


def _figure(context: Context, settings: pd.DataFrame, quantity: OverClocks) -> Figure:
    """Return one quantity over clocks, a panel for each combination of what else differs."""
    name, word = f"{quantity.word.lower()}-by-clock", quantity.word
    chosen = _with_clocks(context, settings, quantity.column)
    colours = context.colours("model")
    panels, varying = [], _varying(settings.loc[chosen])
    for inside in groups(context.points.loc[chosen], PANEL):
        lines = _lines(context, settings, chosen[inside])
        rows = [row for own in lines for row in _rows(context, settings, own, quantity, varying)]
        if rows:
            called = context.called(context.points.loc[lines[0][0]], ALIKE)
            panels.append(Panel("" if called == "all" else called, rows))
    title, sentence = f"{word} by clock", _sentence(panels, word.lower())
    across = f"{CLOCKS[varying[0]]} clock, GHz" if len(varying) == 1 else "clock setting"
    spec = charts.lines(across, f"{word.lower()}, {quantity.unit}", colours)
    return Figure(name, title, sentence, panels, {"": spec}, colours, "model")


def _with_clocks(context: Context, settings: pd.DataFrame, column: str) -> np.ndarray:
    """Return the lines of the points with a quantity at a setting of its own."""
    values = context.points[column].to_numpy(dtype=float, na_value=np.nan)
    return np.flatnonzero(context.timed & (values > 0) & settings.notna().any(axis=1).to_numpy())


def _varying(settings: pd.DataFrame) -> list[str]:
    """Return the clocks with several values."""
    return [name for name in CLOCKS if settings[name].nunique(dropna=False) > 1]


def _lines(context: Context, settings: pd.DataFrame, chosen: np.ndarray) -> list[np.ndarray]:
    """Return the points of each network at several settings, in their order, of at most so many networks."""
    found = []
    for inside in groups(context.points.loc[chosen], ["model"]):
        own = settings.loc[chosen[inside]].drop_duplicates().sort_values([*CLOCKS], na_position="first")
        if len(own) >= FEWEST:
            found.append(own.index.to_numpy())
    return found[:MOST_LINES]


def _rows(
    context: Context, settings: pd.DataFrame, own: np.ndarray, quantity: OverClocks, varying: Sequence[str]
) -> list[dict[str, Any]]:
    values: Floats = context.points.loc[own, quantity.column].to_numpy(dtype=float) * quantity.times
    places = settings.loc[own, varying[0]] / GHZ if len(varying) == 1 else np.arange(1, len(own) + 1)
    return [
        {
            "p": int(line),
            "x": significant(float(place)),
            "y": significant(value),
            "c": context.value(int(line), "model"),
            "d": context.value(int(line), "model"),
            "t": f"{_in_words(settings.loc[line].to_dict())}: {value:.4g} {quantity.unit}",
        }
        for line, place, value in zip(own.tolist(), places, values.tolist(), strict=True)
    ]


def _in_words(clocks: Mapping[Any, float]) -> str:
    known = [f"{CLOCKS[name]} {clock / GHZ:.4g} GHz" for name, clock in clocks.items() if np.isfinite(clock)]
    return ", ".join(known)


def _sentence(panels: Sequence[Panel], word: str) -> str:
    """Return how far the settings of one network are apart at most."""
    ratios = []
    for panel in panels:
        for label in dict.fromkeys(row["c"] for row in panel.rows):
            values = [row["y"] for row in panel.rows if row["c"] == label]
            ratios.append(max(values) / min(values))
    return f"Settings change the {word} of a network by up to {max(ratios):.3g} times." if ratios else ""
