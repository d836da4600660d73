"""Every command with its arguments and options: names, types, defaults, and which must be given."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer import Typer
from typer.main import get_command

from dlas.face.cli.app import app

RECORDED = Path(__file__).parent / "options.txt"
"""What the commands take: a change of it is one that users see."""


def test_commands_take_what_is_recorded() -> None:
    assert "\n".join(lines(app, get_command(app))) + "\n" == RECORDED.read_text()


def lines(typed: Typer, group: Any, prefix: str = "") -> Iterator[str]:
    """Yield a line for each command, and one for each argument and option of it, the options sorted."""
    callbacks = {found.name or named(found.callback): found.callback for found in typed.registered_commands}
    for name, callback in sorted(callbacks.items()):
        hints = typing.get_type_hints(callback)
        parameters = group.commands[name].params
        arguments = [line(each, hints) for each in parameters if each.param_type_name == "argument"]
        options = sorted(line(each, hints) for each in parameters if each.param_type_name == "option")
        yield f"{prefix}{name}"
        yield from (f"    {text}" for text in (*arguments, *options))
    for found in typed.registered_groups:
        assert found.typer_instance is not None
        below = str(found.typer_instance.info.name)
        yield from lines(found.typer_instance, group.commands[below], f"{prefix}{below} ")


def named(callback: Any) -> str:
    return str(callback.__name__).replace("_", "-")


def line(parameter: Any, hints: dict[str, Any]) -> str:
    """Return a parameter in words."""
    argument = parameter.param_type_name == "argument"
    names = [parameter.metavar or parameter.name] if argument else parameter.opts
    told = [" / ".join([*names, *parameter.secondary_opts]), shown(hints[parameter.name])]
    told += ["required"] if parameter.required else []
    told += ["several"] if parameter.multiple or parameter.nargs != 1 else []
    told += ["flag"] if getattr(parameter, "is_flag", False) else []
    told += [] if parameter.default is None else [f"default {parameter.default!r}"]
    told += [f"from {parameter.min:g}"] if parameter.min is not None else []
    told += [f"to {parameter.max:g}"] if parameter.max is not None else []
    return "  ".join(told)


def shown(hint: Any) -> str:
    """Return the type of a parameter, whether or not it may be left out."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not type(None))
    return inspect.formatannotation(hint)
