"""Operators of a network that follow from its options, for rows that do not tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlas.stack import Model, Operator
from dlas.sweep.rows.results import Row
from dlas.sweep.study import parts
from dlas.sweep.study.point import Choice


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
