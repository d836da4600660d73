"""``dlas show`` of a predictor: its card."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from dlas.face.console.show import indented, side_by_side
from dlas.face.tables import cards
from dlas.face.tables.device import never_seen_in_short
from dlas.face.tables.text import Grid
from dlas.prediction.learning import stored
from dlas.prediction.learning.cards import card_of


def show(folder: Path, number: str | None = None) -> RenderableType:
    """Return a predictor's card, to be printed: of one setting in full, of several a line each.

    Parameters
    ----------
    folder : Path
        The predictor's.
    number : str, optional
        Of the setting that is shown in full.

    Raises
    ------
    InputError
        If it holds no predictor, or there is no such setting.
    """
    known = stored.read(folder)
    record, found = known.record, card_of(known, number)
    above: list[RenderableType] = [
        Text(cards.heading(record), style="bold"),
        indented(side_by_side({"with": cards.libraries(record)})),
    ]
    if len(found) > 1:
        hint = Text("a number after the folder shows its setting in full", style="dim")
        return Group(*above, Grid(cards.settings(found, record.target), below=[hint]))
    (card,) = found
    told = cards.facts(card, record.target)
    if unseen := never_seen_in_short(folder, known):
        told = {"never seen": unseen, **told}
    return Group(*above, Text(cards.setting_name(card.setting), style="bold"), indented(side_by_side(told)))
