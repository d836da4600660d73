"""What commands write to: a terminal, or a file or pipe in its place."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType
from rich.markup import escape

WIDTH = 200
"""Columns when the output is not a terminal: a file or a pipe need not wrap."""


def console() -> Console:
    """Return a console that wraps at the terminal's width, and hardly at all elsewhere."""
    return Console(width=None if sys.stdout.isatty() else WIDTH)


def show(renderable: RenderableType) -> None:
    """Print a table or the like, whole where the output is not a terminal."""
    from dlas.console.grid import print_whole

    print_whole(console(), renderable)


def complain(message: str) -> None:
    """Say on standard error what is wrong."""
    Console(stderr=True, soft_wrap=True).print(f"[red]dlas:[/red] {escape(message)}", highlight=False)
