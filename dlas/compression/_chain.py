"""Several compression techniques in order, as a study's ``chain = [...]`` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dlas.data import Data
from dlas.stack import Compression, Facts, Model, Network, Part, Workspace


@dataclass(frozen=True)
class Chain(Compression):
    """Each technique compresses what the one before it returned.

    Parameters
    ----------
    links : tuple of Compression
    """

    links: tuple[Compression, ...]

    def delegates(self) -> Sequence[Part]:
        """Return the techniques."""
        return self.links

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the network after the last technique."""
        for number, link in enumerate(self.links):
            folder = workspace.folder / f"{number}"
            folder.mkdir(exist_ok=True)
            network = link.compress(network, data, replace(workspace, folder=folder))
        return network

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved network; the last technique knows its structure."""
        return self.links[-1].restore(model, folder, facts)
