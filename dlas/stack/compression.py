"""Compression: what makes a network smaller or cheaper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dlas.stack.dataset import Data
from dlas.stack.model import Model, Workspace
from dlas.stack.network import Facts, Kept, Network
from dlas.stack.part import Part


class Compression(Part, ABC):
    """Makes a network smaller or cheaper."""

    def way(self, labelled: bool) -> Sequence[Mapping[str, Any]]:
        """Return the options that differ in the compressions passed on the way to this one, mildest first.

        Each of their networks is kept, and the next one starts from it: a study
        that asks for five levels of a pruning trains once.

        Parameters
        ----------
        labelled : bool
            Whether the data set has labels to train on.
        """
        return ()

    @abstractmethod
    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the compressed network; ``network``, the last one on the way, may be changed in place.

        Raises
        ------
        Unsupported
            If this network, or this data, is not one that the technique is for.
        """

    def choose(self, passed: Sequence[Kept]) -> Network | None:
        """Return one of the networks on the way, if this compression is a choice among them.

        Parameters
        ----------
        passed : sequence of Kept
            What the way started from, then its networks in order.
        """
        return None

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved compressed network; by default it has the model's own structure."""
        return model.restore(folder, facts)
