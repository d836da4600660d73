"""Networks, which pass between the steps of a point, and their facts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.stack.dataset import Images
from dlas.stack.layer import Operator


@dataclass
class Facts:
    """Properties of a network, in the units of a row.

    ``accuracy`` and ``validation_accuracy`` are fractions; None where there are
    no labels or the network is ``untrained``.  ``macs`` counts multiply-adds of
    convolutions and linear layers for one image.  ``reached`` holds the
    results of a compression, under names that reports use:

    ``ratio``
        Share of the convolutions' weights that are zero or removed.
    ``bits``
        Bits a value.
    ``level``, ``units``
        Share of the technique's units to prune, as requested and as reached.
    ``layers``
        ``ratio`` by layer.
    ``curve``
        The milestones and the network itself, in order: level, ratio, accuracies before
        and after fine-tuning, epochs, seconds.
    ``path``
        Which phases of a flexible network are shallow; beside it ``stage``, ``kept`` and
        ``extra_parameters``, and for all paths together ``phases`` and ``paths``.

    ``effective_macs`` leaves out multiply-adds with a weight of zero; ``csr_bytes`` is
    ``model_bytes`` with the weights of convolutions in compressed sparse rows.
    ``dense_shapes`` are the shapes of the convolutions' weights before any channel was
    removed, by layer; empty if none was.
    """

    shape: tuple[int, int, int]
    classes: int
    trained: bool = False
    note: str | None = None
    accuracy: float | None = None
    validation_accuracy: float | None = None
    test_images: int | None = None
    parameters: int | None = None
    nonzeros: int | None = None
    macs: int | None = None
    effective_macs: int | None = None
    model_bytes: int | None = None
    csr_bytes: int | None = None
    reached: dict[str, Any] = field(default_factory=dict)
    dense_shapes: dict[str, list[int]] = field(default_factory=dict)


class Network(ABC):
    """A network with a reference function, which compiled builds must reproduce."""

    facts: Facts
    tolerance: float = 1e-4
    """Largest accepted ``max|y - reference| / max|reference|``."""

    @abstractmethod
    def reference(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] that a build is compared with."""

    def operators(self) -> Mapping[int, Sequence[Operator]]:
        """Return the operators of one inference in order, by batch; empty if they are not known.

        One that takes any batch tells those of 1 and 2 at least: :mod:`dlas.networks.operators` derives
        others.
        """
        return {}

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write what :meth:`Model.restore` needs into ``folder``; no pickles."""


@dataclass(frozen=True)
class SavedNetwork:
    """A network in the cache: its facts, and a function that restores it."""

    facts: Facts
    restore: Callable[[], Network]


INDEX_BYTES = 4
"""Size of a column index or a row start in compressed sparse rows."""
Outputs = npt.NDArray[np.float32]
"""Outputs of shape [n, classes]."""


def csr_bytes(filters: int, nonzeros: int, value_bytes: int = 4) -> int:
    """Return the size of a weight in compressed sparse rows (values, columns, row starts), a row a filter."""
    return nonzeros * (value_bytes + INDEX_BYTES) + (filters + 1) * INDEX_BYTES
