"""The reference of commands: a page for each, from the command line's own tree, and a list of all."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from dlas.face.cli.app import app
from docs.building.places import DOCS

FOLDER = DOCS / "reference/commands"
ABOVE = """\
# Commands

`dlas COMMAND --help` prints the same in a terminal.

"""
MARKUP = re.compile(r"\\(\[)")
"""A bracket that is none of rich's markup."""
TYPE = re.compile(r"<(?P<several>list\[)?(?P<type>[^\]>]*)\]?>")
"""The type of a parameter's value as typer writes it."""
TYPES = {
    "str": "TEXT",
    "path": "PATH",
    "file": "FILE",
    "directory": "FOLDER",
    "int": "NUMBER",
    "float": "NUMBER",
}
"""What stands for a value of a type; a name of a type contains the key."""


def pages() -> Iterator[tuple[Path, str]]:
    """Yield each page and its text."""
    program: Any = typer.main.get_command(app)
    lines = ["| command | does |", "|---|---|"]
    for name, command in program.commands.items():
        yield FOLDER / f"{name}.md", page(command, f"dlas {name}")
        lines.append(f"| [`dlas {name}`]({name}.md) | {cell(_summary(command))} |")
    contents = "\n".join(program.commands)
    table = "\n".join(lines)
    yield FOLDER / "index.md", f"{ABOVE}{table}\n\n```{{toctree}}\n:hidden:\n\n{contents}\n```\n"


def page(command: Any, called: str, heading: str = "#") -> str:
    """Return the description of a command, and of those below it.

    Parameters
    ----------
    command : click.Command
    called : str
        How it is called.
    heading : str
        The mark of its heading.
    """
    with command.make_context(called, [], resilient_parsing=True) as context:
        usage = " ".join(command.collect_usage_pieces(context))
        pieces = [f"{heading} `{called}`", inspect.cleandoc(command.help or ""), _block(f"{called} {usage}")]
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
        if arguments:
            lines = [(_spelling(each, context), meaning(each)) for each in arguments]
            pieces.append(_table(("argument", "meaning"), *lines))
        if options:
            rows = [(_spelling(each, context), default(each, context), meaning(each)) for each in options]
            pieces.append(_table(("option", "default", "meaning"), *rows))
    for name, below in getattr(command, "commands", {}).items():
        pieces.append(page(below, f"{called} {name}", f"{heading}#"))
    return "\n\n".join(pieces) + ("\n" if heading == "#" else "")


def meaning(parameter: Any) -> str:
    """Return what a parameter's help says, as a cell of a table."""
    return cell(" ".join(MARKUP.sub(r"\1", parameter.help or "").split()))


def default(option: Any, context: Any) -> str:
    """Return an option's default as the command line writes it; empty where it has none."""
    value = option.get_default(context)
    if option.required:
        return "required"
    if value is None or value in (False, (), [], "") or callable(value):
        return ""
    if value is True:
        return f"`{option.opts[0]}`"
    return f"`{','.join(map(str, value)) if isinstance(value, list | tuple) else value}`"


def cell(text: str) -> str:
    """Return text as a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;") if "`" not in text else text.replace("|", "\\|")


def _spelling(parameter: Any, context: Any) -> str:
    """Return how a parameter is written, with what follows it."""
    record = parameter.get_help_record(context)
    written = record[0].strip() if record else parameter.name
    if parameter.param_type_name == "argument":
        return f"`{cell(written.partition(' <')[0])}`"
    return f"`{cell(TYPE.sub(_placeholder, written))}`"


def _placeholder(found: re.Match[str]) -> str:
    """Return what stands for a value: ``PATH ...`` for any number of paths."""
    kind = next((name for part, name in TYPES.items() if part in found["type"].lower()), "VALUE")
    return f"{kind} ..." if found["several"] else kind


def _summary(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def _table(heads: Sequence[str], *rows: Sequence[str]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
