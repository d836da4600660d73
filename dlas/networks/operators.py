"""The operators of a network, kept with it: what its layers compute at any batch, without compiling it.

They are written down at one image, at two and, where that does not suffice, at three. Every number of
them grows by the same amount with each further image, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from dlas.errors import Unsupported
from dlas.stack import Network, Operator

OPERATORS_FILE = "operators.json"
Operators = Mapping[int, Sequence[Operator]]
"""A network's operators in the order in which they run, by the batch that they are for."""


def save_operators(network: Network, folder: Path) -> None:
    """Write a network's operators into ``folder``; nothing if they are not known."""
    operators = network.operators()
    if operators:
        content = {str(batch): list(layers) for batch, layers in operators.items()}
        (folder / OPERATORS_FILE).write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


def read_operators(folder: Path) -> Operators:
    """Return the operators in a network's folder; empty if they are not known.

    Raises
    ------
    OSError, ValueError
        If the file is damaged.
    """
    path = folder / OPERATORS_FILE
    if not path.exists():
        return {}
    return {int(batch): layers for batch, layers in json.loads(path.read_text(encoding="utf-8")).items()}


def by_batch(operators_at: Callable[[int], Sequence[Operator]]) -> Operators:
    """Return what :func:`at_batch` needs of a network that takes any batch.

    Parameters
    ----------
    operators_at : callable
        Returns the operators at a batch.
    """
    one, two = operators_at(1), operators_at(2)
    if _shape(one) == _shape(two):
        return {1: one, 2: two}
    # Some networks do without a dimension of one image.
    three = operators_at(3)
    return {1: one, 2: two, 3: three} if _shape(two) == _shape(three) else {1: one}


def at_batch(operators: Operators, batch: int) -> list[Operator]:
    """Return the operators of one inference of ``batch`` images, in order and without times.

    Parameters
    ----------
    operators : mapping
        What :func:`read_operators` returns.

    Raises
    ------
    Unsupported
        If the network does not take this batch, or its operators are not known.
    """
    if batch in operators:
        return [*operators[batch]]
    if len(operators) < 2:
        fixed = ", ".join(map(str, operators))
        raise Unsupported(
            f"the network is fixed to batch {fixed}, not {batch}" if fixed else "its operators are not known"
        )
    *_, before, last = sorted(operators)
    steps = (batch - last) // (last - before)
    return [_grown(*pair, steps) for pair in zip(operators[before], operators[last], strict=True)]


def without_reads(operator: Operator) -> Operator:
    """Return an operator without what it reads, which rows do not tell."""
    told = {name: value for name, value in operator.items() if name not in ("reads", "views")}
    return cast(Operator, told)


def _grown(before: Any, last: Any, steps: int) -> Any:
    """Return ``last`` with each of its whole numbers grown by so many times what it grew since ``before``."""
    if isinstance(last, dict):
        return {name: _grown(before[name], value, steps) for name, value in last.items()}
    if isinstance(last, list):
        return [_grown(*pair, steps) for pair in zip(before, last, strict=True)]
    whole = isinstance(last, int) and not isinstance(last, bool)
    return last + steps * (last - before) if whole else last


def _shape(value: Any) -> Any:
    """Return a value with all its whole numbers the same."""
    if isinstance(value, dict):
        return {name: _shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shape(each) for each in value]
    return 0 if isinstance(value, int) and not isinstance(value, bool) else value
