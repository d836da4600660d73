"""Models: architectures, and how they get their weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dlas.stack.dataset import Data
from dlas.stack.layer import Operator
from dlas.stack.network import Facts, Network
from dlas.stack.part import Part


@dataclass(frozen=True)
class Workspace:
    """Seed, folder and progress output of a long step."""

    seed: int
    """All randomness follows from it."""
    folder: Path
    """A private folder that outlives a killed process; the step resumes from the files in it."""
    say: Callable[[str], None] = print
    """Takes one line of progress ("epoch 3 of 20")."""


class Model(Part, ABC):
    """An architecture and how it gets its weights."""

    image_sizes: ClassVar[tuple[int, ...]] = (32, 64, 96, 128, 160, 192, 224)
    """Heights and widths of images at which networks that are drawn get measured."""

    @abstractmethod
    def build(self, data: Data, workspace: Workspace) -> Network:
        """Return the network for ``data``: constructed, and trained or loaded."""

    def untrainable(self, data: Data, batch: int) -> str | None:
        """Return why the network for ``data`` cannot be trained on ``batch`` images, as far as it is known.

        By default None: what stands against it is found when the step is tried.
        """
        return None

    def operators(self, shape: tuple[int, int, int], classes: int, batch: int) -> Sequence[Operator]:
        """Return the operators of an inference where they follow from the options; by default none.

        They describe networks of rows from elsewhere, which nobody makes here.

        Parameters
        ----------
        shape : tuple of int
            One image, (c, h, w).

        Raises
        ------
        InputError
            If it takes no such images.
        """
        return ()

    @abstractmethod
    def restore(self, folder: Path, facts: Facts) -> Network:
        """Return the network that :meth:`Network.save` wrote into ``folder``."""
