"""Boards of one model: how far their times, energy and power are apart, and from themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlas.analysis.matching import natural
from dlas.analysis.variability.observed import TARGETS, Observed, observe
from dlas.analysis.variability.variability import Variability, variability
from dlas.errors import InputError
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Paragraph, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, rgb
from dlas.face.tables.variability import MOST_GROUPS, conclusions, of_boards, of_groups
from dlas.stack.types import Floats

TITLE = "Boards alike"
MOST_PANELS = 6
"""Most networks with a panel: those whose boards are furthest apart."""
MOST_SETTINGS = 3
"""Most settings of the hardware in a panel: the first, the last and the one between them."""
DECILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of a box: its lines end at the deciles."""
WITHIN = "all boards"
RUNS = "folder"
"""What tells runs apart: these are no boards."""


def section(context: Context) -> Section | Absent:
    """Return the figures and tables of each quantity that several boards have.

    References
    ----------
    MIRAGE, section 3.1, Figures 2 and 3.
    """
    found = [each for each in (_compared(context, target) for target in TARGETS) if each is not None]
    if not found:
        return Absent(TITLE, "the same points on two boards of one model or more")
    lead = (
        "RD is the relative difference of an observation from the median of the boards' medians at its "
        "point. Boxes are quartiles, lines end at the deciles; settings of the hardware have a colour each."
    )
    return Section("boards", TITLE, lead, [block for each in found for block in _blocks(each)])


def _compared(context: Context, target: str) -> Variability | None:
    """Return how boards differ in a quantity, None where no several have it."""
    if context.rows is None:
        return None
    try:
        observed = observe(context.rows, target)
    except InputError:
        return None
    return variability(observed) if observed.told_by != RUNS else None


def _blocks(found: Variability) -> list[Block]:
    return [
        _between(found),
        _within(found.observed),
        of_boards(found),
        of_groups(found, MOST_GROUPS),
        Paragraph(items=[(sentence, None) for sentence in conclusions(found)]),
    ]


def _between(found: Variability) -> Figure:
    """Return the boards' differences on the networks on which they are furthest apart (Figure 2)."""
    observed, word = found.observed, _word(found.observed)
    shown = [each.group for each in found.groups[:MOST_PANELS]]
    settings = _settings(observed.lines[observed.lines["group"].isin(shown)])
    colours = {setting: rgb(*hue) for setting, hue in zip(settings, HUES, strict=False)}
    panels = [Panel(group, _boxes_of(observed, group, settings)) for group in shown]
    furthest = found.groups[0]
    sentence = f"Boards are furthest apart on {furthest.group}: {furthest.apart:.1%}."
    spec = charts.boxes(f"RD of {word}, %", colours)
    title = f"Difference of boards in {word}"
    return Figure(f"boards-{word}", title, sentence, panels, {"": spec}, colours, filtered=False)


def _within(observed: Observed) -> Figure:
    """Return how far observations are from the median of their own board (Figure 3)."""
    word, colours = _word(observed), {WITHIN: rgb(*HUES[0])}
    rows, spreads = [], []
    for group, lines in observed.lines.groupby("group", sort=False):
        own = lines.groupby(["item", "board"])["value"].transform("median").to_numpy(dtype=float)
        box = _box(str(group), WITHIN, _relative(lines, own))
        rows.append(box)
        spreads.append(box["hi"] - box["lo"])
    widest = np.argsort(spreads, kind="stable")[::-1][:MOST_GROUPS]
    panels = [Panel("", [rows[place] for place in widest.tolist()])]
    sentence = f"Between the deciles a board differs from itself by {np.median(spreads):.1f} %, the median."
    spec = charts.boxes(f"{word}: difference from its own board's median, %", colours)
    title = f"Difference of boards from themselves in {word}"
    return Figure(f"within-boards-{word}", title, sentence, panels, {"": spec}, colours, filtered=False)


def _settings(lines: pd.DataFrame) -> list[str]:
    """Return at most :data:`MOST_SETTINGS` labels of hardware, evenly spread."""
    ordered = sorted(map(str, lines["hardware"].unique()), key=natural)
    places = np.linspace(0, len(ordered) - 1, min(MOST_SETTINGS, len(ordered)))
    return [ordered[round(place)] for place in places.tolist()]


def _boxes_of(observed: Observed, group: str, settings: Sequence[str]) -> list[dict[str, Any]]:
    """Return a box for each board and setting on one network."""
    lines = observed.lines[observed.lines["group"] == group]
    return [
        _box(observed.boards[board], str(setting), _relative(own, own["reference"].to_numpy(dtype=float)))
        for board, on_board in enumerate(lines.groupby("board", sort=True))
        for setting, own in on_board[1].groupby("hardware", sort=True)
        if setting in settings
    ]


def _relative(lines: pd.DataFrame, reference: Floats) -> Floats:
    """Return the relative difference of every sample from its line's reference, in percent."""
    pieces = [100 * (own / base - 1) for own, base in zip(lines["samples"], reference, strict=True)]
    return np.concatenate(pieces)


def _box(category: str, colour: str, differences: Floats) -> dict[str, Any]:
    low, first, middle, third, high = np.quantile(differences, DECILES).tolist()
    ends = {"lo": low, "q1": first, "x": middle, "q3": third, "hi": high}
    told = f"{category}, {colour}: {middle:+.2f} %, deciles {low:+.2f} to {high:+.2f} %"
    return {"y": category, "c": colour, "t": told, **{name: significant(end) for name, end in ends.items()}}


def _word(observed: Observed) -> str:
    return observed.target.rpartition("_")[0]
