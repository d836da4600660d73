"""Tables to look at and to compute with."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.text import Text

from dlas.face.tables.text import print_whole
from dlas.sweep.rows.frame import DAMAGED
from dlas.sweep.rows.labels import rows as counted
from dlas.sweep.rows.missing import MISSING, missing_of, told

PAGE = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',consolas,monospace\">{code}</pre>"
)


class View:
    """A table: rich text on a terminal, HTML in a notebook, and a DataFrame as ``frame``.

    Parameters
    ----------
    frame : DataFrame
        What it shows, as numbers.
    shown : renderable
    """

    def __init__(self, frame: pd.DataFrame, shown: RenderableType) -> None:
        self.frame = frame
        self.shown = shown

    def __rich__(self) -> RenderableType:
        return self.shown

    def __str__(self) -> str:
        return self._printed().export_text(styles=False).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return it as HTML, which notebooks ask for."""
        return self._printed().export_html(code_format=PAGE, inline_styles=True)

    def _printed(self) -> Console:
        """Return a console that has printed it at full width, and recorded that."""
        options: dict[str, Any] = {"force_terminal": False, "force_jupyter": False}
        console = Console(file=io.StringIO(), record=True, **options)
        print_whole(console, self.shown)
        return console


def view_of_rows(
    frame: pd.DataFrame,
    shown: RenderableType,
    rows: pd.DataFrame,
    where: str | Sequence[str],
    predictions: bool = False,
) -> View:
    """Return what is shown of rows, and below it what of their studies is missing, and what is damaged."""
    if missing := missing_of(rows):
        frame.attrs[MISSING] = missing
    lines = [Text(line, "yellow") for line in told(rows, bool(where), predictions)]
    if damaged := rows.attrs.get(DAMAGED):
        lines.append(Text(f"{counted(damaged)} left out: damaged"))
    return View(frame, Group(shown, *lines) if lines else shown)
