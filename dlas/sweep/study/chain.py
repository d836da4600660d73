"""Several compression techniques in order, as a study's ``chain = [...]`` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.stack import Compression, Data, Facts, Model, Network, Part, SavedNetwork, Workspace


@dataclass(frozen=True)
class Chain(Compression):
    """The last technique, applied to the network of the techniques before it, which is saved."""

    links: tuple[Compression, ...]

    def delegates(self) -> Sequence[Part]:
        """Return the techniques."""
        return self.links

    def imports(self) -> list[str]:
        """Return what the last technique imports: the network of those before it is there."""
        return self.links[-1].imports()

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        """Return the network after the last technique."""
        return self.links[-1].compress(network, data, workspace)

    def choose(self, candidates: Sequence[SavedNetwork]) -> Network | None:
        """Return the last technique's choice, if it makes one."""
        return self.links[-1].choose(candidates)

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved network, by the last technique that changed its structure."""
        changing = [link for link in self.links if type(link).restore is not Compression.restore]
        return (changing or self.links)[-1].restore(model, folder, facts)
