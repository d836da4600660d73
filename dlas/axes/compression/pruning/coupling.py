"""Channels of a network that must be removed together, found with torch-pruning, and their removal."""

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
"""Layers that may lose channels; the result of a norm across channels would change."""
CHECKED_IMAGES = 2
FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""Errors of torch-pruning, and of networks that it has pruned wrongly."""


@dataclass(frozen=True)
class Unit:
    """Channels that must be removed together."""

    root: str
    """A convolution's name."""
    channels: tuple[int, ...]
    """Its output channels that are removed."""
    filters: Mapping[str, tuple[int, ...]]
    """By convolution, the root included, the output channels that are removed with them."""


class Coupling:
    """Dependencies between the channels of a network.

    Additions couple channels to one another; batch norms, depthwise convolutions and
    the readers of a channel, also behind a concatenation, depend on it.

    Parameters
    ----------
    module : torch.nn.Module
    shape : tuple of int
        An image, (c, h, w).

    Attributes
    ----------
    units : list of Unit
        Units that do not reach the network's outputs.

    Raises
    ------
    Unsupported
        If torch-pruning cannot follow this network's channels, or none can be removed.

    References
    ----------
    G. Fang et al., "DepGraph: Towards Any Structural Pruning", CVPR 2023.
    """

    def __init__(self, module: nn.Module, shape: tuple[int, int, int]) -> None:
        self._module, self._shape = module, shape
        self._names = {layer: name for name, layer in module.named_modules()}
        with _failures_as_unsupported(), torch.enable_grad():
            self._graph = DependencyGraph().build_dependency(
                module,
                [torch.zeros(1, *shape)],
                output_transform=torch.clone,  # an operator without a layer, which marks outputs
                verbose=False,
            )
            groups = self._graph.get_all_groups(root_module_types=[nn.Conv2d])
            self.units = [unit for group in groups for unit in self._units(group)]
        if not self.units:
            raise Unsupported("no channel can be removed without changing the number of outputs")

    def remove(self, chosen: Iterable[Unit], tolerance: float) -> dict[str, tuple[torch.Tensor, ...]]:
        """Remove units from the module, in place.

        Returns
        -------
        dict
            By layer that has lost channels, the rows of its tensors that are left, and the columns of its
            weight.

        Raises
        ------
        Unsupported
            If the outputs of the smaller network differ from those of the original with
            these channels at zero by more than ``tolerance`` of the largest output.
        """
        with _failures_as_unsupported(), torch.no_grad():
            removed = self._removed(chosen)
            for layer, _ in removed:
                if not isinstance(layer, NARROWED):
                    raise Unsupported(
                        f"layer {self._names[layer]!r} ({type(layer).__name__}) cannot lose channels"
                    )
            images = np.random.default_rng(0).standard_normal((CHECKED_IMAGES, *self._shape), np.float32)
            for (layer, handler), channels in removed.items():
                if self._graph.is_out_channel_pruning_fn(handler):
                    _zero_channels(layer, channels)
            expected = run_module(self._module, images)
            kept = self._kept(removed)
            for (layer, handler), channels in removed.items():
                handler(layer, channels)
            error = _error(run_module(self._module, images), expected)
        if not error <= tolerance:
            raise Unsupported(
                f"removing this network's channels does more than set them to zero: the outputs differ by "
                f"{error:.3g} of the largest"
            )
        return kept

    def _kept(
        self, removed: Mapping[tuple[nn.Module, Any], list[int]]
    ) -> dict[str, tuple[torch.Tensor, ...]]:
        """Return the rows and columns that will be left of each layer's tensors."""
        left: dict[str, list[torch.Tensor]] = {}
        for (layer, handler), channels in removed.items():
            first = next(iter(layer.state_dict().values()))  # the weight, or a norm's mean
            indices = left.setdefault(self._names[layer], [torch.arange(size) for size in first.shape[:2]])
            place = 0 if self._graph.is_out_channel_pruning_fn(handler) else 1
            if place < len(indices) and channels[-1] < first.shape[place]:
                gone = torch.zeros(first.shape[place], dtype=torch.bool)
                gone[channels] = True
                indices[place] = indices[place][~gone]
        return {name: tuple(indices) for name, indices in left.items()}

    def _removed(self, chosen: Iterable[Unit]) -> dict[tuple[nn.Module, Any], list[int]]:
        """Return the channels to remove, by layer and torch-pruning's function for its inputs or outputs."""
        roots: dict[str, list[int]] = defaultdict(list)
        for unit in chosen:
            roots[unit.root] += unit.channels
        removed: dict[tuple[nn.Module, Any], set[int]] = defaultdict(set)
        for name, channels in roots.items():
            root = self._module.get_submodule(name)
            handler = self._graph.get_pruner_of_module(root).prune_out_channels
            group = self._graph.get_pruning_group(root, handler, sorted(channels))
            if not self._graph.check_pruning_group(group):
                raise Unsupported(f"no channel would be left of those that go with {name!r}")
            for dependency, indices in group:
                if dependency.target.module in self._names:
                    removed[dependency.target.module, dependency.handler].update(indices)
        return {key: sorted(channels) for key, channels in removed.items()}

    def _units(self, group: Any) -> Iterator[Unit]:
        """Yield the units of a group of coupled layers, none if it reaches the outputs."""
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
                _couple(together, item, size)
        for channels in {min(tied): tied for tied in together.values()}.values():
            yield Unit(self._names[root], tuple(sorted(channels)), _merged(filters, channels))


def _couple(together: dict[int, set[int]], item: Any, size: int) -> None:
    """Couple the channels at the same place of a convolution's groups of ``size`` channels."""
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
    """Return the filters that are removed with any of the channels, by convolution."""
    merged: dict[str, set[int]] = defaultdict(set)
    for channel in channels:
        for name, indices in filters[channel].items():
            merged[name].update(indices)
    return {name: tuple(sorted(indices)) for name, indices in merged.items()}


def _zero_channels(layer: nn.Module, channels: list[int]) -> None:
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
def _failures_as_unsupported() -> Iterator[None]:
    """Raise failures of torch-pruning as Unsupported; ignore its warnings, since results are checked."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="torch_pruning")
            yield
    except FAILURES as error:
        raise Unsupported(
            f"torch-pruning cannot follow this network's channels: {type(error).__name__}: {error}"
        ) from error
