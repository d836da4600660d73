"""Read rows as examples: each with its network's operators and its program's kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.stack import Layer, Model, Operator
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice

COPY = "clone"
"""What an activation in place does in training, so that its input is there in the backward pass."""
DROPOUT = ("Bernoulli", "Dropout")
"""Operators of a dropout; PyTorch's on CPUs draws, divides and multiplies: ``d``, ``d.div``, ``d.mul``."""


@dataclass(frozen=True)
class DerivedOperators(Mapping[int, Sequence[Operator]]):
    """Operators of a network that follow from its options, listed when read: they take much memory."""

    model: Model
    shape: tuple[int, int, int]
    classes: int
    batch: int
    """The only one."""

    def __getitem__(self, batch: int) -> Sequence[Operator]:
        if batch != self.batch:
            raise KeyError(batch)
        return self.model.operators(self.shape, self.classes, batch)

    def __contains__(self, batch: object) -> bool:
        return batch == self.batch  # by default it would list them

    def __iter__(self) -> Iterator[int]:
        return iter((self.batch,))

    def __len__(self) -> int:
        return 1


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


def derived_operators(row: Row) -> DerivedOperators | None:
    """Return the operators of an imported row where they follow from its options, else None.

    Raises
    ------
    InputError
        If the model takes no such images.
    """
    if row.imported is None or row.compression != {"name": "none"}:
        return None
    images, network = Choice.of(row.dataset), Choice.of(row.model)
    if images.name not in parts.plain_names("dataset") or network.name not in parts.plain_names("model"):
        return None
    if parts.find("model", network.name).cls.operators is Model.operators:
        return None
    if parts.find("dataset", images.name).cls.labelled:  # its images are files, which need not be here
        return None
    data = images.make("dataset").load()
    found = DerivedOperators(network.make("model"), data.shape, data.classes, row.batch)
    return found if found[row.batch] else None


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
    return [_corrected(layer, seconds) for layer, seconds in timed_layers(row)]


def _corrected(kernel: Layer, seconds: float) -> Layer:
    """Return a kernel with its corrected time, and the energy of that time at the power that was measured."""
    profiled_s, joules = kernel.get("latency_s"), kernel.get("energy_j")
    told: Layer = {**kernel, "latency_s": seconds}
    if joules and profiled_s:
        told["energy_j"] = joules * seconds / profiled_s
    return told
