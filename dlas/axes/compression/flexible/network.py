"""A flexible network between the steps of a point: all its paths, and the network at one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dlas.axes.compression.flexible.module import FlexibleModule, flexible
from dlas.networks.origins import SeededConstruction
from dlas.networks.torch.network import TorchNetwork
from dlas.stack import Facts

ALL = "all"
"""The path of the flexible network itself, which computes what its legacy network does."""


class FlexibleNetwork(TorchNetwork):
    """A network with all its paths; as a network it computes that of zeros.

    Parameters
    ----------
    facts : Facts
        ``reached["paths"]`` tells each path's accuracies and multiply-adds.
    """

    module: FlexibleModule

    def __init__(self, module: FlexibleModule, facts: Facts, tolerance: float = 1e-4) -> None:
        super().__init__(module, facts, tolerance)

    def at(self, path: str) -> TorchNetwork:
        """Return the network at a path.

        Raises
        ------
        Unsupported
            If there is no such path.
        """
        module, reached = self.module.at(path), self.facts.reached
        told: dict[str, Any] = reached["paths"][path]
        facts = replace(
            self.facts,
            accuracy=told.get("accuracy"),
            validation_accuracy=told.get("validation_accuracy"),
            reached={
                **{name: value for name, value in reached.items() if name not in ("paths", "phases")},
                "path": path,
            },
        )
        network = TorchNetwork(module, facts, self.tolerance)
        if self.origin is not None:
            origin = self.origin
            network.origin = SeededConstruction(origin.seed, lambda: legacy_of(origin))
        network.count()
        return network


def flexible_origin(legacy: SeededConstruction | None, share: float) -> SeededConstruction | None:
    """Return the construction of a flexible network whose legacy network follows from a seed."""
    return legacy and SeededConstruction(
        legacy.seed, lambda: flexible(legacy.construct(), share, legacy.seed)
    )


def legacy_of(origin: SeededConstruction) -> Any:
    """Return the legacy network of a flexible one, as constructed."""
    module = origin.construct()
    assert isinstance(module, FlexibleModule)
    return module.legacy
