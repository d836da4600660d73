"""Tables to look at and to compute with."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
from rich.console import Console, RenderableType

from dlas.face.tables.text import print_whole

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
