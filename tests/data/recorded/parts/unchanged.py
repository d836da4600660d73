"""No compression: the network as its model part made it."""

from __future__ import annotations

from dataclasses import dataclass

from dlas.stack import Compression, Data, Network, Workspace


@dataclass(frozen=True)
class Unchanged(Compression):
    """The dense network, unchanged."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return ``network`` itself."""
        return network
