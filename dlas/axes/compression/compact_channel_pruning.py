"""Channel pruning that removes channels from the network, so that dense kernels get faster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn

from dlas.axes.compression.pruning import channels
from dlas.axes.compression.pruning.channels import Channels
from dlas.axes.compression.pruning.coupling import Coupling, Unit
from dlas.axes.compression.pruning.importance import unit_importance
from dlas.axes.compression.pruning.iterative import IterativePruning, ratios
from dlas.axes.compression.pruning.widths import narrow
from dlas.errors import InputError, Unsupported
from dlas.networks.torch.model import TorchModel
from dlas.networks.torch.network import TorchNetwork, conv_weights
from dlas.networks.weights import WEIGHTS_FILE, load_weights
from dlas.stack import Data, Facts, Model, Network, Workspace

VECTOR = 16
"""Values of float32 in the widest vectors of processors."""
UNEVEN = f"no multiple of {VECTOR}"


@dataclass(frozen=True)
class CompactChannelPruning(IterativePruning):
    """Removal of convolutions' output channels, iterative with fine-tuning.

    A channel is removed together with all that depends on it: the channels that it is
    added to, its batch norm, the inputs of the layers that read it.  The network then
    computes the same as with those channels and their batch norm at zero; a network
    for which this does not hold is declined.  The number of outputs stays the same, every
    convolution keeps at least one channel, and a grouped one two a group.  The other options are those of
    :class:`dlas.axes.compression.pruning.iterative.IterativePruning`; ``level`` is a share of
    the dense network's output channels of convolutions, and channels that go
    together have the mean importance of their filters.

    Numbers of channels that are no multiple of :data:`VECTOR` do not fill vectors, and kernels for them
    lose half and more of what is expected from the multiply-adds: the network's note counts such layers.
    """

    GRID: ClassVar[tuple[float, ...]] = channels.GRID

    multiple: Annotated[int, Field(ge=1, le=64)] = 1
    """The remaining channels of a convolution are a multiple of this, or all stay, so that kernels fill whole
    vectors, 16 values of float32 on most processors. With 1 any number may stay, and kernels are slow.
    Channels kept for this are not made up for elsewhere, so less than ``level`` is reached.
    """

    def prune(self, network: TorchNetwork, level: float, data: Data, workspace: Workspace) -> None:
        """Remove the least important channels.

        Raises
        ------
        Unsupported
            If the network is a path of a flexible one, whose shallow phases are no layers of the model.
        """
        module, facts = network.module, network.facts
        if path := facts.reached.get("path"):
            raise Unsupported(
                f"channels are removed from the model's own layers, and path {path!r} of leaf has others: "
                "prune before leaf in the chain"
            )
        weights = conv_weights(module)
        facts.dense_shapes = facts.dense_shapes or {
            name: list(weight.shape) for name, weight in weights.items()
        }
        importance = unit_importance(module, Channels(), self.criterion, data, workspace.seed)
        coupling = Coupling(module, facts.shape)
        widths = {name: len(weight) for name, weight in weights.items()}
        dense = {name: facts.dense_shapes[name][0] for name in widths}
        room = {name: count - _fewest(module.get_submodule(name)) for name, count in widths.items()}
        if self.scope == "layer":
            room = {name: min(room[name], _more(level, dense[name], widths[name])) for name in widths}
        most = _more(level, sum(dense.values()), sum(widths.values()))
        least = _least(coupling.units, importance, room, most)
        kept = coupling.remove(_in_multiples(least, widths, self.multiple), network.tolerance)
        network.origin = network.origin and network.origin.narrowed(kept)
        facts.note = _with_note(facts.note, _unevenly_narrowed(network), len(weights))

    def reached(self, network: TorchNetwork) -> dict[str, Any]:
        """Return the shares of output channels and of weights of convolutions that are removed."""
        dense = sum(shape[0] for shape in network.facts.dense_shapes.values())
        channels_left = sum(len(weight) for weight in conv_weights(network.module).values())
        return {"units": 1 - channels_left / dense, **ratios(network)}

    def restore(self, model: Model, folder: Path, facts: Facts) -> Network:
        """Return the saved network: the model's dense one, made as narrow as its saved tensors.

        Raises
        ------
        Unsupported
            If the model does not make torch modules.
        InputError
            If the file cannot come from removing channels of this model.
        """
        if not isinstance(model, TorchModel):
            raise Unsupported(f"{model!r} does not make torch modules, whose channels can be removed")
        path = folder / WEIGHTS_FILE
        network, state = model.dense(folder, facts)
        narrow(network.module, state)
        load_weights(network.module, state, str(path))
        _check_fit(network.module, facts.shape, path)
        return network


def _unevenly_narrowed(network: TorchNetwork) -> int:
    """Return how many convolutions lost channels and keep a number that is no multiple of :data:`VECTOR`."""
    dense = network.facts.dense_shapes
    left = {name: len(weight) for name, weight in conv_weights(network.module).items()}
    return sum(count < dense[name][0] and count % VECTOR > 0 for name, count in left.items())


def _with_note(before: str | None, uneven: int, convolutions: int) -> str | None:
    """Return a network's note with what its numbers of channels mean for its speed."""
    notes = [note for note in (before or "").split("; ") if note and UNEVEN not in note]
    if uneven:
        notes.append(
            f"{uneven} of {convolutions} convolutions have channels in {UNEVEN}, whose kernels are slow: "
            f"`multiple = {VECTOR}` avoids them"
        )
    return "; ".join(notes) or None


def _fewest(conv: nn.Module) -> int:
    """Return the least number of output channels that a convolution keeps."""
    assert isinstance(conv, nn.Conv2d)
    # One a group would make a grouped convolution look like a depthwise one.
    return 1 if conv.groups in (1, conv.out_channels) else 2 * conv.groups


def _more(level: float, dense: int, width: int) -> int:
    """Return how many more of a layer's ``width`` channels to remove to reach ``level`` of the dense ones."""
    return max(0, round(level * dense) - (dense - width))


def _least(
    units: Iterable[Unit], importance: Mapping[str, torch.Tensor], room: Mapping[str, int], most: int
) -> list[Unit]:
    """Return the least important units.

    Parameters
    ----------
    importance : mapping
        Of each filter of a convolution, [k].
    room : mapping
        How many filters each convolution can lose.
    most : int
        How many filters may go altogether.
    """
    values = {name: of_filters.numpy() for name, of_filters in importance.items()}

    def mean(unit: Unit) -> float:
        total = sum(float(values[name][list(indices)].sum()) for name, indices in unit.filters.items())
        return total / sum(map(len, unit.filters.values()))

    spent: Counter[str] = Counter()
    chosen = []
    for unit in sorted(units, key=mean):
        filters = {name: len(indices) for name, indices in unit.filters.items()}
        fits = all(spent[name] + count <= room[name] for name, count in filters.items())
        if fits and spent.total() + sum(filters.values()) <= most:
            spent.update(filters)
            chosen.append(unit)
    return chosen


def _in_multiples(chosen: Iterable[Unit], widths: Mapping[str, int], multiple: int) -> list[Unit]:
    """Return the units, least important first, without those that would leave less than a whole multiple.

    Parameters
    ----------
    widths : mapping
        Number of filters of each convolution.
    """
    by_root: dict[str, list[Unit]] = defaultdict(list)
    for unit in chosen:
        by_root[unit.root].append(unit)
    for root, units in by_root.items():
        while units and (widths[root] - sum(len(unit.filters[root]) for unit in units)) % multiple:
            units.pop()
    return [unit for units in by_root.values() for unit in units]


def _check_fit(module: nn.Module, shape: tuple[int, int, int], path: Path) -> None:
    """Raise InputError unless the layers of a narrowed network fit one another."""
    try:
        with torch.no_grad():
            module(torch.zeros(1, *shape))
    except RuntimeError as error:
        raise InputError(f"weights {str(path)!r}: their layers do not fit one another: {error}") from error
