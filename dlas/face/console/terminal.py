"""Output of commands: to a terminal, or to a file or pipe."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner

from dlas.errors import unknown
from dlas.face.spelling import spelled

WIDTH = 200
"""Columns where the output is not a terminal."""


LONGEST = 160
"""Characters of a name or a value that an error message quotes."""
LONG = re.compile(rf"'[^']{{{LONGEST},}}'|\"[^\"]{{{LONGEST},}}\"|[^\s'\"]{{{2 * LONGEST},}}")
CONSOLES: dict[str, dict[str, Any]] = {
    "auto": {},
    "rich": {"force_terminal": True},
    "plain": {"force_terminal": False, "force_jupyter": False, "color_system": None},
    "silent": {"quiet": True},
}
"""Options of consoles by how progress is to be shown."""


def console(progress: str = "auto", *, stderr: bool = False) -> Console:
    """Return a console of the terminal's width, or of :data:`WIDTH` columns without a terminal.

    It writes to standard output, or to standard error.

    Raises
    ------
    InputError
        If ``progress`` is none of :data:`CONSOLES`.
    """
    if progress not in CONSOLES:
        raise unknown("progress", progress, CONSOLES)
    file = sys.stderr if stderr else sys.stdout
    return Console(width=None if file.isatty() else WIDTH, stderr=stderr, **CONSOLES[progress])


def show(renderable: RenderableType) -> None:
    """Print a table; at full width where the output is not a terminal."""
    from dlas.face.tables.text import print_whole

    print_whole(console(), renderable)


def show_json(value: object) -> None:
    """Print a value as JSON; every number must be finite."""
    console().out(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False), highlight=False)


def warn(message: str) -> None:
    """Print a warning on standard error."""
    Console(stderr=True, soft_wrap=True).print(
        f"[yellow]warning:[/yellow] {escape(spelled(message))}", highlight=False
    )


def say(message: str) -> None:
    """Print a message as it is."""
    console().print(spelled(message), highlight=False, markup=False)


def progress(message: str) -> None:
    """Show a line of progress on standard error, where that is a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(message, highlight=False, markup=False, style="dim")


@contextmanager
def working(message: str) -> Iterator[None]:
    """Show on standard error that something goes on, where that is a terminal and nothing else is shown."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    shown = Spinner("dots", escape(message), style="status.spinner")
    with Live(shown, console=console, transient=True, redirect_stdout=False):
        yield


def complain(message: str) -> None:
    """Print an error message on standard error; long names and values in it are cut."""
    Console(stderr=True, soft_wrap=True).print(f"[red]dlas:[/red] {escape(cut(message))}", highlight=False)


def cut(message: str) -> str:
    """Return a message with its long names and values cut."""
    return LONG.sub(lambda found: f"{found[0][:LONGEST]}…{found[0][-1]}", message)
