"""Compression: techniques that make a network smaller or cheaper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dlas.stack.dataset import Data
from dlas.stack.model import Model, Workspace
from dlas.stack.network import Facts, Network, SavedNetwork
from dlas.stack.part import Part


class Compression(Part, ABC):
    """Makes a network smaller or cheaper."""

    def milestones(self, labelled: bool) -> Sequence[Mapping[str, Any]]:
        """Return the milder settings whose networks are made before this one, mildest first.

        Each milestone gives the options in which it differs from this compression.  Its
        network is saved, and the next one starts from it: a study that asks for five
        levels of a pruning trains once.

        Parameters
        ----------
        labelled : bool
            Whether the data set has labels to train on.
        """
        return ()

    @abstractmethod
    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the compressed network.

        Parameters
        ----------
        network : Network
            The last milestone's network, or the dense one if there is no milestone; may be changed in place.

        Raises
        ------
        Unsupported
            If the technique cannot handle this network or this data.
        """

    def choose(self, candidates: Sequence[SavedNetwork]) -> Network | None:
        """Return one of the candidates if this compression only chooses among networks; else None.

        Parameters
        ----------
        candidates : sequence of SavedNetwork
            The network that the first milestone started from, then those of the milestones in order.
        """
        return None

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved compressed network; by default it has the model's own structure."""
        return model.restore(folder, facts)
