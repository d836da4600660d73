"""The phases of a network: runs of blocks of one width, which a shallow phase can stand in for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from dlas.errors import Unsupported

KNOWN = (
    "it knows ResNets (layer1 to layer4), MobileNetV2 and other blocks in a row of which at least two have "
    "one width, and VGGs (convolutions between poolings)"
)
FEWEST = 2
"""Least number of blocks, or of convolutions between poolings, in a phase."""


@dataclass(frozen=True)
class Phase:
    """A phase."""

    modules: tuple[str, ...]
    """Names of the modules that, one after the other, are the phase."""

    @property
    def name(self) -> str:
        """The phase as messages name it: ``layer1``, ``features.2-3``."""
        first, last = self.modules[0], self.modules[-1]
        return first if first == last else f"{first}-{last.rpartition('.')[2]}"


def find_phases(module: nn.Module) -> tuple[Phase, ...]:
    """Return the phases of a network in order.

    They are the stages ``layer1``, ``layer2``, ... of a ResNet (conv2_x to conv5_x in its paper); in a
    network of blocks in a row, the runs of blocks that write as many channels, up to the next one with
    strides; in a VGG, the convolutions up to a pooling.  A run of a single block is no phase: nothing in it
    is repeated.  MobileNetV2 has seven groups of blocks, and those of 16 and of 320 channels are such runs.

    Raises
    ------
    Unsupported
        If it has none.
    """
    phases = tuple(_stages(module)) or tuple(_runs(module))
    if not phases:
        raise Unsupported(f"leaf finds no phases in this network ({type(module).__name__}): {KNOWN}")
    return phases


def _stages(module: nn.Module) -> Iterator[Phase]:
    for name, child in module.named_children():
        if re.fullmatch(r"layer\d+", name) and isinstance(child, nn.Sequential) and len(child) >= FEWEST:
            yield Phase((name,))


def _runs(module: nn.Module) -> Iterator[Phase]:
    """Yield the phases of modules in a row: the network itself, or its ``features``."""
    row = module if isinstance(module, nn.Sequential) else getattr(module, "features", None)
    if not isinstance(row, nn.Sequential):
        return
    prefix = "" if row is module else "features."
    items = [(prefix + name, child) for name, child in row.named_children()]
    runs = _of_blocks(items) if any(map(_width, row)) else _of_convolutions(items)
    yield from (Phase(tuple(names)) for names in runs)


def _of_blocks(items: Sequence[tuple[str, nn.Module]]) -> Iterator[list[str]]:
    """Yield runs of blocks of one width; a block with strides begins a new one."""
    runs: list[tuple[int, list[str]]] = []
    for name, child in items:
        width = _width(child)
        if runs and width == runs[-1][0] and not _strided(child):
            runs[-1][1].append(name)
        else:
            runs.append((width, [name]))
    yield from (names for width, names in runs if width and len(names) >= FEWEST)


def _of_convolutions(items: Sequence[tuple[str, nn.Module]]) -> Iterator[list[str]]:
    """Yield runs from a convolution to a pooling with several convolutions."""
    names: list[str] = []
    convolutions = 0
    for name, child in items:
        convolutions += isinstance(child, nn.Conv2d)
        if convolutions:
            names.append(name)
        if isinstance(child, nn.MaxPool2d):
            if convolutions >= FEWEST:
                yield names
            names, convolutions = [], 0


def _strided(block: nn.Module) -> bool:
    return any(isinstance(layer, nn.Conv2d) and max(layer.stride) > 1 for layer in block.modules())


def _width(block: nn.Module) -> int:
    """Return the channels that a block of several convolutions writes, 0 for what is no such block."""
    convolutions = [layer for layer in block.modules() if isinstance(layer, nn.Conv2d)]
    return convolutions[-1].out_channels if len(convolutions) > 1 else 0
