"""Filters of points: ``axis=pattern``, or a condition such as ``algorithm == 'gemm' and batch > 1``.

A condition has the grammar of Python, whose parser reads it.  It is never run: the few
kinds of expression that it may hold are evaluated here, and every other is refused.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from dlas.errors import InputError, listed, unknown
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import AXES, MACHINE

Values = tuple[Any, ...]
"""What a name stands for in a point: an axis for its label and its part's name, an option for its value."""
NAMES = (*AXES, MACHINE, "status", "study")
PATTERN = re.compile(r"\s*([\w.-]*)\s*=(?!=)(.*)", re.DOTALL)
MOST_CHARACTERS = 2000
FORMS = "axis=pattern, e.g. model=cifar_*, nor a condition, e.g. \"algorithm == 'gemm' and batch > 1\""
ORDERS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
COMPARISONS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, *ORDERS)


@dataclass(frozen=True)
class Pattern:
    """Keeps the points whose ``name`` has a value that matches a pattern with ``*``, ``?`` and ``[...]``."""

    name: str
    pattern: str

    @property
    def names(self) -> tuple[str, ...]:
        """The name that it reads."""
        return (self.name,)

    def keeps(self, facts: Mapping[str, Values]) -> bool:
        """Return whether a value matches as text, or is the number that the pattern is."""
        return any(self._matches(value) for value in facts[self.name])

    def _matches(self, value: object) -> bool:
        # Truths are written as in study files.
        text = str(value).lower() if isinstance(value, bool) else str(value)
        number = _number(self.pattern)
        return fnmatchcase(text, self.pattern) or (number is not None and _number(text) == number)


@dataclass(frozen=True)
class Condition:
    """Keeps the points for which an expression holds."""

    text: str
    expression: ast.expr

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it reads."""
        return tuple(dict.fromkeys(_names(self.expression)))

    def keeps(self, facts: Mapping[str, Values]) -> bool:
        """Return whether the expression holds for what the names stand for."""
        return _holds(self.expression, facts)


def parse(text: str) -> Pattern | Condition:
    """Return the filter that somebody wrote.

    Parameters
    ----------
    text : str
        ``axis=pattern`` or ``axis.option=pattern``; or comparisons of axes, options, ``status``,
        ``study`` and ``machine`` with texts and numbers, joined by ``and``, ``or`` and ``not``.

    Raises
    ------
    InputError
        If it is neither, or names what is no axis.
    """
    pattern = PATTERN.fullmatch(text)
    if pattern:
        name = pattern.group(1)
        _check_name(name, text)
        return Pattern(name, pattern.group(2).strip())
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"`where=` of {len(text):,} characters; at most {MOST_CHARACTERS:,}")
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"`where={text!r}` is not of the form {FORMS}: {error}") from None
    _check(expression, text)
    return Condition(text, expression)


def kept(filters: Sequence[Pattern | Condition], columns: Mapping[str, Sequence[Values]]) -> list[bool]:
    """Return which points all filters keep; of several patterns for one name, any.

    Parameters
    ----------
    columns : mapping of str to sequence
        For each name in the filters, what it stands for in each point.

    Raises
    ------
    InputError
        If a filter alone keeps no point though there are some.
    """
    points = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    together: dict[object, list[list[bool]]] = {}
    for chosen in filters:
        keeps = [chosen.keeps(facts) for facts in points]
        if points and not any(keeps):
            raise _nothing(chosen, columns)
        key = chosen.name if isinstance(chosen, Pattern) else chosen
        together.setdefault(key, []).append(keeps)
    either = [[any(point) for point in zip(*alternatives, strict=True)] for alternatives in together.values()]
    return [all(point) for point in zip(*either, strict=True)]


def _check(node: ast.expr, text: str) -> None:
    """Refuse everything but comparisons joined by ``and``, ``or`` and ``not``."""
    match node:
        case ast.BoolOp(values=values):
            for value in values:
                _check(value, text)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            _check(operand, text)
        case ast.Compare(left=left, ops=ops, comparators=others):
            for kind in ops:
                if not isinstance(kind, COMPARISONS):
                    raise InputError(f"`where={text!r}`: compare with ==, !=, <, <=, >, >=, in or not in")
            for operand in (left, *others):
                _check_operand(operand, text)
        case _:
            raise InputError(f"`where={text!r}` is not of the form {FORMS}: {_source(node)} compares nothing")


def _check_operand(node: ast.expr, text: str) -> None:
    """Refuse everything but names, texts, numbers and lists of them."""
    match node:
        case ast.Name() | ast.Attribute():
            _check_name(_dotted(node) or _source(node), text)
        case ast.Constant(value=str() | int() | float()):
            pass
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            pass
        case ast.List(elts=items) | ast.Tuple(elts=items):
            for item in items:
                _check_operand(item, text)
        case _:
            raise InputError(f"`where={text!r}`: {_source(node)} is no axis, option, text, number or list")


def _check_name(name: str, text: str) -> None:
    axis, _, option = name.partition(".")
    if name not in NAMES and not (axis in PART_AXES and option):
        problem = unknown("axis in `where=`", name, NAMES)
        quoted = "" if PATTERN.fullmatch(text) else f"; a text needs quotes: {name!r}"
        raise InputError(f"{problem}{quoted}")


def _holds(node: ast.expr, facts: Mapping[str, Values]) -> bool:
    """Return whether a checked expression holds."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_holds(value, facts) for value in values)
        case ast.BoolOp(values=values):
            return any(_holds(value, facts) for value in values)
        case ast.UnaryOp(operand=operand):
            return not _holds(operand, facts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            operands = [_values(operand, facts) for operand in (left, *others)]
            pairs = zip(ops, itertools.pairwise(operands), strict=True)
            return all(_compares(kind, *pair) for kind, pair in pairs)
    raise AssertionError(f"unchecked: {ast.dump(node)}")


def _compares(kind: ast.cmpop, left: Values, right: Values) -> bool:
    """Return whether a value on the left and one on the right compare so; no value equals nothing."""
    equal = any(a == b for a in left for b in right)
    if isinstance(kind, ast.Eq | ast.In):
        return equal
    if isinstance(kind, ast.NotEq | ast.NotIn):
        return not equal
    order = ORDERS[type(kind)]
    return any(order(a, b) for a in left for b in right if isinstance(a, str) == isinstance(b, str))


def _values(node: ast.expr, facts: Mapping[str, Values]) -> Values:
    """Return what a checked operand stands for."""
    match node:
        case ast.Constant(value=value):
            return (value,)
        case ast.UnaryOp(operand=ast.Constant(value=value)):
            return (-value,)  # type: ignore[operator]  # a number, as checked
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return tuple(value for item in items for value in _values(item, facts))
    return facts[_dotted(node)]


def _names(expression: ast.expr) -> Iterator[str]:
    """Yield the names in a checked expression."""
    inner = {id(node.value) for node in ast.walk(expression) if isinstance(node, ast.Attribute)}
    for node in ast.walk(expression):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in inner:
            yield _dotted(node)


def _dotted(node: ast.expr) -> str:
    """Return a name with its dots; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _source(node: ast.expr) -> str:
    return repr(ast.unparse(node))


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError):
        return None


def _nothing(chosen: Pattern | Condition, columns: Mapping[str, Sequence[Values]]) -> InputError:
    """Return the error for a filter that keeps no point: it lists the values that there are."""
    values = {name: dict.fromkeys(map(str, _flat(columns[name]))) for name in chosen.names}
    if isinstance(chosen, Pattern):
        return unknown(f"{chosen.name} in `where=`", chosen.pattern, values[chosen.name])
    there = "; ".join(f"{name}: {listed(sorted(found)) or 'none'}" for name, found in values.items())
    return InputError(f"`where={chosen.text!r}` matches nothing (there are {there})")


def _flat(column: Sequence[Values]) -> Iterator[Any]:
    return (value for values in column for value in values)


def patterns(where: str | Sequence[str]) -> Sequence[str]:
    """Return the filters in an argument that is one or several."""
    return [where] if isinstance(where, str) else where
