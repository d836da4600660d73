"""No compression: the network of the model part."""

from __future__ import annotations

from dataclasses import dataclass

from dlas.stack import Compression, Data, Network, Workspace


@dataclass(frozen=True)
class NoCompression(Compression):
    """The dense network, unchanged."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return ``network`` itself."""
        return network
