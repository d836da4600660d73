"""Kinds of pictures of an experiment: figures of the report, ratios of matched points, and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.analysis.matching import identity, natural, paired
from dlas.face.reporting import charts, context_of
from dlas.face.reporting.blocks import Absent, Figure, Panel, Section
from dlas.face.reporting.context import Context, significant, worded
from dlas.face.reporting.data import figures
from dlas.face.reporting.palette import HUES, rgb
from dlas.face.tables.columns import with_unit
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.labels import shown_in
from docs.building.places import EXPERIMENTS

MOST_PANELS = 6
"""Most panels of a picture: more cannot be read on a page."""


@dataclass(frozen=True, kw_only=True)
class Picture(ABC):
    """A picture that answers an experiment's question."""

    rows: Sequence[str] = ("rows",)
    """The folders of the experiment whose rows it shows."""
    where: Sequence[str] = ()
    """Filters of these rows."""
    caption: str = ""
    """What it shows, if the figure's own sentence does not tell it here."""

    def figure(self, experiment: Path) -> Figure:
        """Return the figure of an experiment's rows."""
        drawn = self._figure([experiment / name for name in self.rows])
        return replace(drawn, sentence=self.caption or drawn.sentence, panels=drawn.panels[:MOST_PANELS])

    @abstractmethod
    def _figure(self, folders: Sequence[Path]) -> Figure: ...


@dataclass(frozen=True, kw_only=True)
class OfReport(Picture):
    """A figure of the report."""

    section: Callable[[Context], Section | Absent]
    """The section that has it."""
    name: str
    """The figure's name."""
    panels: Sequence[str] = ()
    """The titles of the panels to show; all if there are none."""

    def _figure(self, folders: Sequence[Path]) -> Figure:
        found = self.section(context_of(folders, self.where))
        drawn = next(each for each in found_in(found) if each.name == self.name)
        chosen = [panel for panel in drawn.panels if not self.panels or panel.title in self.panels]
        return replace(drawn, panels=chosen)


@dataclass(frozen=True, kw_only=True)
class Ratios(Picture):
    """Times of points that are equal but for their value on one axis, over those with one value of it."""

    title: str
    quantity: str
    """What the x axis shows."""
    axis: str
    """The axis whose values are compared."""
    to: str
    """The value to which the others are compared."""
    down: str
    """The axis whose values are below each other."""
    colour: str
    """The axis whose values have colours."""
    apart: Sequence[str] = ()
    """The axes that make panels."""
    free: Sequence[str] = ()
    """Other axes on which the points of a pair may differ."""
    slower: bool = False
    """Whether ratios tell how many times as long the others take, not how many times as fast they are."""

    def _figure(self, folders: Sequence[Path]) -> Figure:
        context = context_of(folders, self.where)
        rows = [row for value in self._others(context) for row in self._rows(context, value)]
        rows.sort(key=lambda row: (natural(row["y"]), natural(row["c"])))
        panels: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            panels.setdefault(row.pop("panel"), []).append(row)
        named = self._colours(context)
        colours = {label: named[label] for label in named if any(row["c"] == label for row in rows)}
        spec = charts.intervals(self.quantity, colours, logarithmic=True, reference=1)
        shown = [Panel(title, charts.stacked(inside)) for title, inside in panels.items()]
        return Figure("ratios", self.title, "", shown, {"": spec}, colours)

    def _others(self, context: Context) -> list[str]:
        return [value for value in context.points[self.axis].dropna().unique() if value != self.to]

    def _colours(self, context: Context) -> Mapping[str, str]:
        if self.colour == "batch":
            values = sorted(filter(None, context.columns["batch"]), key=natural)
            labels = dict.fromkeys(worded("batch", value) for value in values)
            return {label: rgb(*hue) for label, hue in zip(labels, HUES, strict=False)}
        return context.colours(self.colour)

    def _rows(self, context: Context, value: str) -> list[dict[str, Any]]:
        points = context.points
        reference, other = points[self.axis] == self.to, points[self.axis] == value
        first, second = (other, reference) if self.slower else (reference, other)
        pairs = paired(points, first, second, identity((self.axis, *self.free)))
        samples = points[SAMPLES].tolist()
        bounds = intervals.ratios(
            [samples[line] for line in pairs["first"]], [samples[line] for line in pairs["second"]]
        )
        lines = pairs["first" if self.slower else "second"]
        return [
            {
                "p": int(line),
                "panel": context.name(line, self.apart) if self.apart else "",
                "y": context.value(line, self.down),
                "c": worded(self.colour, context.value(line, self.colour)),
                "x": significant(ratio),
                "lo": significant(low),
                "hi": significant(high),
                "s": "",
                "n": bool(low <= 1 <= high),
            }
            for line, ratio, (_, low, high) in zip(lines, pairs["ratio"], bounds, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Predicted(Picture):
    """What a predictor says of rows that it was not fitted to, over what was measured."""

    predictor: str
    target: str
    hold_out: str
    options: Mapping[str, str] = field(default_factory=dict)

    def _figure(self, folders: Sequence[Path]) -> Figure:
        # Other pictures take no predictors, whose imports take seconds.
        from benchmarks.recomputed.evaluated import evaluated, read
        from dlas.prediction.learning.settings import predictor_of

        names = [folder.relative_to(EXPERIMENTS).as_posix() for folder in folders]
        made = {self.predictor: predictor_of(self.predictor, self.options)}
        (setting,) = evaluated(made, read(self.target, *names), self.target, self.hold_out)
        words, unit, factor = shown_in(self.target)
        tried = pd.concat(
            pd.DataFrame({"x": setting.first.samples.target[fold.fold.tried], "y": fold.predicted})
            for fold in setting.first.tried
        )
        colours = {"held out": rgb(*HUES[0])}
        pairs = (tried * factor).itertuples(index=False)
        rows = [{"x": measured, "y": guess, "c": "held out"} for measured, guess in pairs]
        spec = charts.agreement(with_unit(words, unit), colours)
        error = (tried["y"] / tried["x"] - 1).abs().mean()
        sentence = (
            f"The predictor `{self.predictor}` was fitted without the rows that it predicts here. Its mean "
            f"error is {error:.1%}. On the line, predicted and measured are equal."
        )
        return Figure("predicted", f"Predicted {words}", sentence, [Panel("", rows)], {"": spec}, colours)


def found_in(section: Section | Absent) -> list[Figure]:
    """Return the figures of a section."""
    return [] if isinstance(section, Absent) else figures([section])
