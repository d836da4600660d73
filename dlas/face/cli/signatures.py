"""What the functions that ``dlas`` exports take, read from their source: importing them takes pandas."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Parameter as Slot

from dlas.face.exports import EXPORTS
from dlas.sweep.study.docstrings import meanings, plain
from dlas.sweep.study.outlines import tree

FUNCTION = re.compile(r":func:`(?:dlas\.)?(\w+)`")
AS_FOR = re.compile(r"(?i)\bas for :func:`(?:dlas\.)?(\w+)`")
NO_COMMANDS = ("load", "predictor", "read")
COMMAND = re.compile(r"``(dlas [^`]*)``")
BOUND = re.compile(r'\{"(\w+)": ([\d.]+)\}')
REQUIRED = Slot.empty
"""The default of a parameter that has none."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function."""

    name: str
    annotation: str
    """As it is written, without None and with its members sorted."""
    default: object
    """:data:`REQUIRED` where there is none; None where only code tells it."""
    meaning: str
    """What the docstring says, in the words of the command line."""


def parameters(function: str) -> dict[str, Parameter]:
    """Return the parameters of a function that ``dlas`` exports.

    Parameters
    ----------
    function : str
        Its name there.
    """
    arguments = _definition(function).args
    defaults = [
        *[None] * (len(arguments.args) - len(arguments.defaults)),
        *arguments.defaults,
        *arguments.kw_defaults,
    ]
    found = [*arguments.args, *arguments.kwonlyargs]
    return {
        each.arg: Parameter(
            each.arg,
            " | ".join(sorted(_members(each.annotation))),
            _value(default),
            _words(_meaning(function, each.arg)),
        )
        for each, default in zip(found, defaults, strict=True)
    }


def _definition(function: str) -> ast.FunctionDef:
    """Return the definition of a function that ``dlas`` exports."""
    body = tree(EXPORTS[function]).body
    return next(node for node in body if isinstance(node, ast.FunctionDef) and node.name == function)


def _members(annotation: ast.expr | None) -> Iterator[str]:
    """Yield the members of an annotation."""
    if isinstance(annotation, ast.BinOp):
        yield from _members(annotation.left)
        yield from _members(annotation.right)
    elif annotation is not None and ast.unparse(annotation) != "None":
        yield ast.unparse(annotation)


def _value(default: ast.expr | None) -> object:
    """Return the value of a default."""
    if default is None:
        return REQUIRED
    try:
        return ast.literal_eval(default)
    except ValueError:
        return None


def _meaning(function: str, name: str) -> str:
    """Return what the docstring of a function says of a parameter, or that of one to which it refers."""
    docstring = ast.get_docstring(_definition(function)) or ""
    said = meanings(docstring).get(name, "")
    if said and not said.startswith("As for "):
        return said
    others = AS_FOR.findall(said or docstring)
    return next(filter(None, (_meaning(other, name) for other in others if other in EXPORTS)), "")


def _words(text: str) -> str:
    """Return a meaning as the command line writes it."""
    text = FUNCTION.sub(lambda found: _call(found[1]), text)
    return plain(COMMAND.sub(r"`\1`", BOUND.sub(r"\1=\2", text)))


def _call(function: str) -> str:
    """Return how the command line names a function."""
    return f"``dlas.{function}``" if function in NO_COMMANDS else f"``dlas {function.replace('_', '-')}``"
