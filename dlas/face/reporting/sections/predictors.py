"""Predictors: what they said of rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterator

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Paragraph, Section
from dlas.face.reporting.context import Context, significant
from dlas.face.reporting.palette import HUES, NEUTRAL, rgb
from dlas.face.tables.columns import with_unit
from dlas.face.tables.scores import by_fold, overall
from dlas.face.tables.table import Table
from dlas.prediction.learning.stored import SettingRecord, StoredPredictor
from dlas.sweep.rows.labels import shown_in

HELD_OUT = "held out"
SHARE = "share of the prediction"
MOST_COLUMNS = 12
"""Most features in the figure of those that matter."""


def section(context: Context) -> Section | Absent:
    """Return predictions against measurements, errors by group, and which features matter."""
    title = "Predictors"
    if not context.predictors:
        return Absent(title, "a predictor: `dlas report FOLDER --predictor predictors/mine`")
    blocks: list[Block] = []
    for number, stored in enumerate(context.predictors):
        for setting in stored.record.settings:
            blocks += _blocks(context, stored, setting, f"{number}-{setting.folder}")
    lead = (
        "Each predictor was fitted without the rows that it predicts here: whole groups were held out. "
        "Baselines stand beside it: the mean of all rows, a line over multiply-adds, and the nearest point."
    )
    return Section("predictors", title, lead, blocks)


def _blocks(context: Context, stored: StoredPredictor, setting: SettingRecord, name: str) -> Iterator[Block]:
    record = stored.record
    # Reports without predictors do not need what it imports.
    from dlas.face.tables import cards
    from dlas.prediction.learning.cards import SettingCard

    card = SettingCard.of(setting, record.hold_out)
    told = cards.lines(cards.facts(card, record.target))
    lead = f"{cards.heading(record)} on {cards.setting_name(setting)}."
    yield Paragraph(lead, [(line, None) for line in told])
    if figure := _agreement(context, stored, setting, f"predicted-{name}"):
        yield figure
    yield from _tables(setting, name)
    if figure := _importances(setting, f"features-{name}"):
        yield figure


def _agreement(context: Context, stored: StoredPredictor, setting: SettingRecord, name: str) -> Figure | None:
    """Return predicted against measured, a mark for each row that was held out; None if the page has none."""
    words, unit, factor = shown_in(stored.record.target)
    lines = {row: line for line, row in enumerate(context.points["id"])}
    rows = [
        {
            "p": lines[row],
            "x": significant(measured * factor),
            "y": significant(guess * factor),
            "c": HELD_OUT,
            "t": f"{context.name(lines[row])}: {guess * factor:.4g} {unit}, measured {measured * factor:.4g}",
        }
        for row, (guess, measured) in setting.tried.items()
        if row in lines
    ]
    if not rows:
        return None
    scores = setting.evaluation[0].overall
    on_page = (
        "" if len(rows) == len(setting.tried) else f"{len(rows)} of {len(setting.tried)} rows are here. "
    )
    sentence = (
        f"The mean error is {scores.mape:.1%}; {scores.within[1]:.0%} of the rows are within 10 %. "
        f"{on_page}On the line, predicted and measured are equal."
    )
    spec = charts.agreement(with_unit(words, unit), {HELD_OUT: rgb(*HUES[0])})
    return Figure(
        name, f"Predicted {words}", sentence, [Panel("", rows)], {"": spec}, {HELD_OUT: rgb(*HUES[0])}
    )


def _tables(setting: SettingRecord, name: str) -> Iterator[Table]:
    """Yield the scores of each predictor, and its mean error by what was held out."""
    scores = {each.name: each.overall for each in setting.evaluation}
    yield overall(scores, f"scores-{name}", "How wrong predictors are on what was held out, together.")
    folds = {each.name: each.by_fold for each in setting.evaluation}
    if len(setting.evaluation[0].by_fold) > 1:
        caption = "The mean relative error by what was held out; the best of a line is marked."
        yield by_fold(folds, f"errors-{name}", caption)


def _importances(setting: SettingRecord, name: str) -> Figure | None:
    """Return the features that matter most; None where the predictor does not tell."""
    if not setting.importances:
        return None
    ranked = sorted(zip(setting.importances, setting.columns, strict=True), reverse=True)[:MOST_COLUMNS]
    rows = [
        {"y": column, "x": significant(share), "c": SHARE, "o": 0, "t": f"{column}: {share:.1%}"}
        for share, column in ranked
        if share > 0
    ]
    spec = charts.bars(SHARE, {SHARE: rgb(*NEUTRAL)})
    sentence = f"{ranked[0][1]} matters most, with {ranked[0][0]:.0%}."
    return Figure(name, "Features that matter", sentence, [Panel("", rows)], {"": spec}, {}, filtered=False)
