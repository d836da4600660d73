"""``dlas show`` of a predictor: its card."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.console.show import indented, side_by_side
from dlas.face.tables import cards
from dlas.face.tables.text import Grid
from dlas.prediction.learning.cards import card_of
from dlas.prediction.learning.stored import StoredPredictor


def show(stored: StoredPredictor, number: str | None = None) -> RenderableType:
    """Return a predictor's card, to be printed: of one setting in full, of several a line each.

    Parameters
    ----------
    number : str, optional
        Of the setting that is shown in full.

    Raises
    ------
    InputError
        If there is no such setting.
    """
    record, found = stored.record, card_of(stored, number)
    above: list[RenderableType] = [
        Text(cards.heading(record), style="bold"),
        indented(side_by_side({"with": cards.libraries(record)})),
    ]
    if len(found) > 1:
        hint = Text("a number after the folder shows its setting in full", style="dim")
        return Group(*above, Grid(cards.settings(found, record.target), below=[hint]))
    (card,) = found
    told = cards.facts(card, record.target)
    return Group(*above, Text(cards.setting_name(card.setting), style="bold"), indented(side_by_side(told)))
