"""Read rows as examples: each with its network's operators and its program's kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dlas.prediction.learning.derived_operators import derived_operators
from dlas.stack import Layer, Operator
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row, read_rows

COPY = "clone"
"""What an activation in place does in training, so that its input is there in the backward pass."""
DROPOUT = ("Bernoulli", "Dropout")
"""Operators of a dropout; PyTorch's on CPUs draws, divides and multiplies: ``d``, ``d.div``, ``d.mul``."""


def read_examples(folders: Iterable[Path], kernels: bool = True) -> Iterator[Example]:
    """Yield the current rows of folders, each file read once and each row let go before the next is read.

    Parameters
    ----------
    folders : iterable of Path
        What ``dlas run --out`` wrote.
    kernels : bool
        Whether to tell the kernels of programs, too.

    Raises
    ------
    InputError
        If a folder holds no results, or a line of them is damaged.
    """
    for folder in folders:
        for row in read_rows(folder):
            yield example_of(row, str(folder), kernels)


def example_of(row: Row, folder: str = "", kernels: bool = True) -> Example:
    """Return a row with what its layers tell; parameters as for :func:`read_examples`."""
    layers = operators_of(row)
    operators = {row.batch: layers} if layers else derived_operators(row) or {}
    return Example(row, operators, _timed(row) if kernels else (), folder)


def operators_of(row: Row) -> list[Operator]:
    """Return the operators of a row's network; empty where the row does not tell their shapes."""
    return inherent([layer for layer in row.layers if layer.get("inputs") and layer.get("output")])


def inherent(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators that inference and training have in common.

    Training adds copies for the backward pass and dropout; without them, a network that was only made has
    the same operators as one that was trained.
    """
    dropouts = {layer["name"] for layer in operators if layer.get("operator") in DROPOUT}
    return [
        layer
        for layer in operators
        if layer.get("operator") != COPY and not dropouts & {layer["name"], layer["name"].rpartition(".")[0]}
    ]


def _timed(row: Row) -> list[Layer]:
    """Return a row's kernels with their corrected times; none where no layer was timed."""
    return [{**layer, "latency_s": seconds} for layer, seconds in timed_layers(row)]
