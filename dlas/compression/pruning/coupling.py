"""Which channels of a network can only go together, and their removal; torch-pruning follows them."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_pruning.dependency import DependencyGraph
from torch_pruning.ops import OPTYPE

from dlas.errors import Unsupported
from dlas.networks.forward import run_module
from dlas.stack import Images

NARROWED = (nn.Conv2d, nn.Linear, nn.modules.batchnorm._BatchNorm)
"""The layers that may lose channels; a norm across channels would change with those that stay."""
TRIED_IMAGES = 2
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors that torch-pruning raises, and those of a network that it has cut wrongly."""


@dataclass(frozen=True)
class Unit:
    """Channels that can only go together.

    Parameters
    ----------
    root : str
        A convolution's name.
    channels : tuple of int
        Those of its output channels that go.
    filters : mapping
        By convolution, the root included, the output channels that go with them.
    """

    root: str
    channels: tuple[int, ...]
    filters: Mapping[str, tuple[int, ...]]


class Coupling:
    """What else goes when a channel of a convolution does.

    Sums tie channels to one another; batch norms, depthwise convolutions and what
    reads a channel, behind a concatenation or not, follow it.

    Parameters
    ----------
    module : torch.nn.Module
    shape : tuple of int
        An image, (c, h, w).

    Attributes
    ----------
    units : list of Unit
        None of them reaches the network's outputs.

    Raises
    ------
    Unsupported
        If torch-pruning cannot follow this network's channels, or none can go.

    References
    ----------
    G. Fang et al., "DepGraph: Towards Any Structural Pruning", CVPR 2023.
    """

    def __init__(self, module: nn.Module, shape: tuple[int, int, int]) -> None:
        self._module, self._shape = module, shape
        self._names = {layer: name for name, layer in module.named_modules()}
        with _declining(), torch.enable_grad():
            self._graph = DependencyGraph().build_dependency(
                module,
                [torch.zeros(1, *shape)],
                output_transform=torch.clone,  # an end that no layer owns, so that outputs are told apart
                verbose=False,
            )
            groups = self._graph.get_all_groups(root_module_types=[nn.Conv2d])
            self.units = [unit for group in groups for unit in self._units(group)]
        if not self.units:
            raise Unsupported("no channel can be removed without changing the number of outputs")

    def remove(self, chosen: Iterable[Unit], tolerance: float) -> None:
        """Remove units from the module, in place.

        Raises
        ------
        Unsupported
            If the smaller network does not compute what the whole one does with
            those channels at zero, by more than ``tolerance`` of the largest output.
        """
        with _declining(), torch.no_grad():
            gone = self._gone(chosen)
            for layer, _ in gone:
                if not isinstance(layer, NARROWED):
                    raise Unsupported(
                        f"layer {self._names[layer]!r} ({type(layer).__name__}) cannot lose channels"
                    )
            images = np.random.default_rng(0).standard_normal((TRIED_IMAGES, *self._shape), np.float32)
            for (layer, handler), channels in gone.items():
                if self._graph.is_out_channel_pruning_fn(handler):
                    _silence(layer, channels)
            expected = run_module(self._module, images)
            for (layer, handler), channels in gone.items():
                handler(layer, channels)
            error = _error(run_module(self._module, images), expected)
        if not error <= tolerance:
            raise Unsupported(
                f"removing this network's channels does more than set them to zero: the outputs differ by "
                f"{error:.3g} of the largest"
            )

    def _gone(self, chosen: Iterable[Unit]) -> dict[tuple[nn.Module, Any], list[int]]:
        """Return which channels go, by layer and torch-pruning's function for its inputs or outputs."""
        roots: dict[str, list[int]] = defaultdict(list)
        for unit in chosen:
            roots[unit.root] += unit.channels
        gone: dict[tuple[nn.Module, Any], set[int]] = defaultdict(set)
        for name, channels in roots.items():
            root = self._module.get_submodule(name)
            handler = self._graph.get_pruner_of_module(root).prune_out_channels
            group = self._graph.get_pruning_group(root, handler, sorted(channels))
            if not self._graph.check_pruning_group(group):
                raise Unsupported(f"no channel would be left of those that go with {name!r}")
            for dependency, indices in group:
                if dependency.target.module in self._names:
                    gone[dependency.target.module, dependency.handler].update(indices)
        return {key: sorted(channels) for key, channels in gone.items()}

    def _units(self, group: Any) -> Iterator[Unit]:
        """Yield what a group of coupled layers can lose, nothing if it reaches the outputs."""
        if any(dependency.target.type == OPTYPE.OUTPUT for dependency, _ in group):
            return
        root = group[0].dep.target.module
        filters: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        together = {channel: {channel} for channel in range(root.out_channels)}
        for item in group:
            layer, handler = item.dep.target.module, item.dep.handler
            if not isinstance(layer, nn.Conv2d):
                continue
            writes = self._graph.is_out_channel_pruning_fn(handler)
            if writes:
                for index, channel in zip(item.idxs, item.root_idxs, strict=True):
                    filters[channel][self._names[layer]].append(index)
            if layer.groups > 1 and item.dep.target.type != OPTYPE.DEPTHWISE_CONV:
                size = (layer.out_channels if writes else layer.in_channels) // layer.groups
                _tie(together, item, size)
        for channels in {min(tied): tied for tied in together.values()}.values():
            yield Unit(self._names[root], tuple(sorted(channels)), _merged(filters, channels))


def _tie(together: dict[int, set[int]], item: Any, size: int) -> None:
    """Tie the channels that have one place in the groups, of ``size`` channels each, of a convolution."""
    places: dict[int, list[int]] = defaultdict(list)
    for index, channel in zip(item.idxs, item.root_idxs, strict=True):
        places[index % size].append(channel)
    for place in places.values():
        tied = set().union(*(together[channel] for channel in place))
        for channel in tied:
            together[channel] = tied


def _merged(
    filters: Mapping[int, Mapping[str, list[int]]], channels: Iterable[int]
) -> dict[str, tuple[int, ...]]:
    """Return the filters that go with any of the channels, by convolution."""
    merged: dict[str, set[int]] = defaultdict(set)
    for channel in channels:
        for name, indices in filters[channel].items():
            merged[name].update(indices)
    return {name: tuple(sorted(indices)) for name, indices in merged.items()}


def _silence(layer: nn.Module, channels: list[int]) -> None:
    """Set output channels of a layer to zero."""
    for name in ("weight", "bias", "running_mean"):
        tensor = getattr(layer, name, None)
        if tensor is not None:
            tensor[channels] = 0


def _error(actual: Images, expected: Images) -> float:
    """Return the largest deviation by the largest expected value; infinite where shapes differ."""
    if actual.shape != expected.shape:
        return float("inf")
    return float(np.abs(actual - expected).max() / (np.abs(expected).max() or 1.0))


@contextmanager
def _declining() -> Iterator[None]:
    """Say of a failure that this network is unsupported; warnings of one are put to the test anyway."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="torch_pruning")
            yield
    except FAILURES as error:
        raise Unsupported(
            f"torch-pruning cannot follow this network's channels: {type(error).__name__}: {error}"
        ) from error
