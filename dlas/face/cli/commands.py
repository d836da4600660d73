"""Commands made from the functions that they call: options, defaults and help stand there alone.

A command's own function takes the call of the other with the values that were given, any of these by their
names, and the options that only the command line has, or has otherwise: those are ``Annotated``.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter as Slot
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape
from typer.core import TyperCommand

from dlas.errors import InputError, Unfinished
from dlas.face.cli.signatures import REQUIRED, Parameter, parameters
from dlas.face.cli.values import NOTATIONS, Notation
from dlas.face.exports import exported
from dlas.face.spelling import SPELLING

if typing.TYPE_CHECKING:
    from dlas.sweep.engine.workers import Steps

Value = TypeVar("Value")
STEPS: Steps = "spawned"
"""Where steps of commands run: in children of an interpreter of their own, which is at fixed addresses."""
LEFT_OUT = ("predictions", "progress", "say", "steps")
"""Parameters that the command line decides itself."""
SPELLED = {
    "every": "--all",
    "keep_builds": "--keep-builds/--no-keep-builds",
    "options": "--set",
    "predictors": "--predictor",
    "row_counts": "--rows",
    "rows": "folders",
    "sizes": "--size",
}
"""What parameters are called that the command line calls otherwise."""
LEAST = {"cache_gib": 0, "jobs": 1}
NAMED = re.compile(r"`(\w+)=([^`]*)`")
"""A parameter in a message, with its value or without: `within=` or `jobs=2`."""


@dataclass(frozen=True)
class Call:
    """A call of a function with what was given on the command line."""

    function: str
    """Its name in ``dlas``."""
    values: Mapping[str, Any]
    """By the names of parameters; those that were left out have the function's defaults."""

    def __call__(self, **more: Any) -> Any:
        """Return what the function returns, with these values too or in place of those."""
        return exported(self.function)(**{**self.values, **more})

    def of(self, function: Callable[..., Value], **more: Any) -> Value:
        """Return what another function returns, with those values that it takes."""
        taken = inspect.signature(function).parameters
        return function(**{name: value for name, value in self.values.items() if name in taken} | more)


def like(
    function: str, *arguments: str, **spelled: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of what a function that ``dlas`` exports takes.

    Parameters
    ----------
    function : str
        Its name.
    arguments : str
        The parameters that are given by their place.
    spelled : str
        What this command calls parameters: an option, or what stands for an argument.

    Returns
    -------
    callable
        Decorates the command's own function, whose first parameter is the :class:`Call`.
    """

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        own = _own(body)
        declared = {
            name: slot for name, slot in own.items() if typing.get_origin(slot.annotation) is Annotated
        }
        taken = {name: each for name, each in parameters(function).items() if name not in LEFT_OUT}
        names = {name: name in arguments for name in (*arguments, *taken, *declared)}
        slots = [
            declared[name] if name in declared else _slot(taken[name], argument, {**SPELLED, **spelled})
            for name, argument in names.items()
        ]

        def command(**given: Any) -> None:
            values = {
                name: value if name in declared else _converted(taken[name], value)
                for name, value in given.items()
                if name in taken and value is not None
            }
            unset = {name: each.default for name, each in taken.items() if name not in declared}
            known = {**given, **unset, **values}
            body(Call(function, values), **{name: known[name] for name in own})

        command.__doc__, command.__name__ = body.__doc__, body.__name__
        command.__annotations__ = {slot.name: slot.annotation for slot in slots}
        slots = [slot.replace(kind=Slot.KEYWORD_ONLY) for slot in slots]
        command.__signature__ = inspect.Signature(slots)  # type: ignore[attr-defined]
        return command

    return decorate


def _own(body: Callable[..., None]) -> dict[str, Slot]:
    """Return the parameters of a command's own function behind the first, with their types evaluated."""
    _, *slots = inspect.signature(body).parameters.values()
    module = sys.modules[body.__module__]
    return {slot.name: slot.replace(annotation=eval(slot.annotation, vars(module))) for slot in slots}


def _notation(parameter: Parameter) -> Notation:
    """Return how the command line writes values of a parameter."""
    if parameter.annotation not in NOTATIONS:
        raise TypeError(f"{parameter.name}: the command line has no notation for {parameter.annotation}")
    return NOTATIONS[parameter.annotation]


def _converted(parameter: Parameter, value: Any) -> Any:
    convert = _notation(parameter).convert
    return value if convert is None else convert(parameter.name, value)


def _slot(parameter: Parameter, argument: bool, spelled: Mapping[str, str]) -> Slot:
    """Return a parameter as typer takes one."""
    notation, name = _notation(parameter), parameter.name
    text = escape(" ".join(filter(None, (notation.help or parameter.meaning, notation.note))))
    default = parameter.default
    if notation.convert is not None and isinstance(default, tuple):
        default = ",".join(map(str, default)) or None
    elif default == ():
        default = None
    if argument:
        info: Any = typer.Argument(metavar=spelled.get(name), help=text)
    else:
        option = spelled.get(name, f"--{name.replace('_', '-')}")
        info = typer.Option(option, help=text, min=LEAST.get(name))
    hint = notation.type if default is REQUIRED or default is not None else notation.type | None
    return Slot(name, Slot.KEYWORD_ONLY, default=default, annotation=Annotated[hint, info])


class Command(TyperCommand):
    """A command whose messages name options as the command line writes them."""

    def invoke(self, context: Any) -> Any:
        """Run the command."""
        spelling = partial(with_dashes, options=options_of(self.params))
        before = SPELLING.set(spelling)
        try:
            return super().invoke(context)
        except (InputError, Unfinished) as error:
            error.args = (spelling(str(error)),)
            raise
        finally:
            SPELLING.reset(before)


def options_of(given: Iterable[Any]) -> dict[str, str]:
    """Return the options of a command by the names of their parameters."""
    return {each.name: each.opts[0] for each in given if each.opts[0].startswith("--")}


def with_dashes(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of the parameters that it names.

    Parameters
    ----------
    message : str
        It writes a parameter as Python does, in backquotes: `within=`, `jobs=2` or `where="batch=8"`.
    options : mapping of str to str
        The options by the names of parameters; others stay as they are.
    """

    def written(found: re.Match[str]) -> str:
        name, value = found.groups()
        if name not in options:
            return found[0]
        shown = value.strip('"')  # the quotes of an example, which Python needs
        return f"{options[name]} {shown}" if shown not in ("", "True") else options[name]

    return NAMED.sub(written, message)
