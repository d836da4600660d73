"""Every compression part there is keeps its contract, and the contract notices what does not."""

from __future__ import annotations

import itertools
from dataclasses import MISSING, dataclass, replace
from pathlib import Path

import pytest
from torch import nn

from dlas.axes.compression.leaf import Leaf
from dlas.axes.compression.none import NoCompression
from dlas.axes.models.supernet import Supernet
from dlas.networks.subnets.written import EXAMPLE
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.stack import Compression, Data, Facts, Model, Network, Workspace
from dlas.sweep.study import parts
from dlas.testing import check_compression
from dlas.testing.networks import TinyDataset, noise

NEEDED: dict[str, object] = {"level": 0.25, "path": "01", "subnet": EXAMPLE}
"""Values for options without a default."""
SHORT = {"leaf": {"epochs": 2}}
"""Options of a technique that trains longer than a test should."""
FLEXIBLE = [{"path": "11", "stage": "fine_tuned"}, {"path": "all"}]
MODELS = {"subnet": Supernet(epochs=1)}
"""Models of techniques that do not take every network."""
DATA = {"trained": TinyDataset().load(), "noise": noise()}


def made(name: str) -> Compression:
    """Return a technique with what it cannot do without."""
    found = parts.find("compression", name)
    needed = [key for key, default in found.options().items() if default is MISSING]
    part: Compression = found.make({key: NEEDED[key] for key in needed} | SHORT.get(name, {}))
    return part


@pytest.mark.parametrize("data", sorted(DATA))
@pytest.mark.parametrize("name", parts.names("compression"))
def test_compression_keeps_its_contract(name: str, data: str) -> None:
    check_compression(made(name), MODELS.get(name), DATA[data])


@pytest.mark.parametrize("options", FLEXIBLE)
def test_every_stage_of_a_flexible_network_keeps_the_contract(options: dict[str, str]) -> None:
    check_compression(Leaf(**options, epochs=1), data=DATA["trained"])  # type: ignore[arg-type]


@dataclass(frozen=True)
class Halves(Compression):
    """Sets the first half of each convolution's filters to zero, and says so."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        assert isinstance(network, TorchNetwork)
        weights = conv_weights(network.module).values()
        for weight in weights:
            weight.data[: len(weight) // 2] = 0
        network.count()
        zeros = sum(weight.numel() - int(weight.count_nonzero()) for weight in weights)
        ratio = zeros / sum(weight.numel() for weight in weights)
        network.facts = replace(network.facts, reached={"ratio": ratio})
        return network


@dataclass(frozen=True)
class Silent(Halves):
    """Does not say what it reached."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        network = super().compress(network, data, workspace)
        network.facts.reached = {}
        return network


@dataclass(frozen=True)
class Boasts(NoCompression):
    """Says that it pruned, and did not."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        network.facts.reached = {"ratio": 0.5}
        return network


@dataclass(frozen=True)
class Misses(Halves):
    """Prunes to another level than it was asked for."""

    level: float = 0.9

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        network = super().compress(network, data, workspace)
        network.facts.reached |= {"level": 0.5}
        return network


CALLS = itertools.count(1)


@dataclass(frozen=True)
class Drifts(Halves):
    """Makes another network at every call."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        network = super().compress(network, data, workspace)
        assert isinstance(network, TorchNetwork)
        next(iter(network.module.parameters())).data += 1e-3 * next(CALLS)
        return network


@dataclass(frozen=True)
class Reshapes(Halves):
    """Changes the structure, and restores the dense one."""

    def compress(self, network: Network, data: Data, workspace: Workspace) -> Network:
        network = super().compress(network, data, workspace)
        assert isinstance(network, TorchNetwork)
        network.module = nn.Sequential(network.module, nn.Linear(4, 4)).eval()
        return network


@dataclass(frozen=True)
class Retouches(Halves):
    """Restores other weights than were saved."""

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        network = super().restore(model, folder, facts)
        assert isinstance(network, TorchNetwork)
        next(iter(network.module.parameters())).data *= 2
        return network


def test_a_technique_that_keeps_the_contract_passes() -> None:
    check_compression(Halves(), data=DATA["noise"])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Silent(), "changes the network and does not say by how much"),
        (Boasts(), "reached the ratio 0.5, and counts no fewer weights"),
        (Misses(), "was to reach level 0.9, and says that it reached 0.5"),
        (Drifts(), "one seed gives two networks"),
        (Reshapes(), "one seed gives two networks|are not for this network"),
        (Retouches(), "restored network"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: Compression, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_compression(wrong, data=DATA["noise"])
