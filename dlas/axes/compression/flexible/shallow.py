"""Shallow phases: the blocks of a phase at a share of their channels, weights drawn from the phase's own."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional

from dlas.errors import Unsupported
from dlas.networks.torch.model import scaled

PASSING = (
    *(nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.GELU, nn.Sigmoid, nn.Identity, nn.Dropout),
    *(nn.MaxPool2d, nn.AvgPool2d),
)
"""Layers without weights, which keep the channels that they read."""
PASSING_FUNCTIONS = (functional.relu, functional.relu6, torch.relu)
ADDITIONS = (operator.add, operator.iadd, torch.add)
Norm = nn.modules.batchnorm._BatchNorm


def shallow_phase(blocks: Sequence[nn.Module], share: float, seed: int) -> nn.Sequential:
    """Return the shallow phase of blocks in a row.

    It has the same blocks at ``share`` of all channels, in multiples of 8; the first one reads all that
    the phase reads.  A 1x1 convolution and batch norm bring the channels back.  A shortcut that would
    add all channels to fewer gets a projection.  Where a block expands its input for a depthwise
    convolution, it keeps its factor.

    Every weight is drawn from the phase's: a kept channel's weights, statistics included; for the 1x1
    convolution that brings channels back, numbers of the last convolution.

    Parameters
    ----------
    blocks : sequence of torch.nn.Module
        The phase; not changed.

    Raises
    ------
    Unsupported
        If the phase holds what cannot be narrowed.
    """
    phase = nn.Sequential(*blocks)
    try:
        graph = fx.Tracer().trace(phase)
    except fx.proxy.TraceError as error:
        raise Unsupported(f"leaf cannot follow what a phase computes: {error}") from error
    narrowing = _Narrowing(phase, share, torch.Generator().manual_seed(seed))
    with torch.random.fork_rng(devices=[]):  # layers are constructed with random weights at first
        for node in list(graph.nodes):
            narrowing.visit(graph, node)
        back = narrowing.back()
    return nn.Sequential(fx.GraphModule(narrowing.layers, graph, "Shallow"), *back)


class _Channels(NamedTuple):
    """Channels of a value in the phase, and those of the same value in its shallow phase."""

    whole: int
    narrow: int


@dataclass
class _Narrowing:
    """Narrows the layers of a traced phase, node by node."""

    phase: nn.Sequential
    share: float
    generator: torch.Generator
    layers: dict[str, nn.Module] = field(default_factory=dict)
    channels: dict[fx.Node, _Channels] = field(default_factory=dict)
    written: _Channels = field(default_factory=lambda: _Channels(0, 0))
    last: nn.Conv2d | None = None
    _kept: dict[_Channels, torch.Tensor] = field(default_factory=dict)

    def visit(self, graph: fx.Graph, node: fx.Node) -> None:
        """Narrow the layer that a node calls, and note the channels of its value."""
        if node.op == "placeholder":
            convolutions = (layer for layer in self.phase.modules() if isinstance(layer, nn.Conv2d))
            read = next(convolutions).in_channels
            self.channels[node] = _Channels(read, read)
        elif node.op == "call_module":
            self.channels[node] = self._layer(node)
        elif node.op == "output":
            self.written = self._read(node)
        elif node.op == "call_function" and node.target in ADDITIONS:
            self.channels[node] = self._addition(graph, node)
        elif node.op == "call_function" and node.target in PASSING_FUNCTIONS:
            self.channels[node] = self._read(node)
        else:
            operator_name = getattr(node.target, "__name__", node.target)
            raise Unsupported(f"leaf cannot narrow {operator_name} in a phase")

    def back(self) -> tuple[nn.Conv2d, nn.BatchNorm2d]:
        """Return the convolution and batch norm that bring the channels back."""
        assert self.last is not None  # a phase has convolutions
        back = nn.Conv2d(self.written.narrow, self.written.whole, 1, bias=False)
        numbers = self.last.weight.detach().flatten()
        drawn = torch.randint(len(numbers), back.weight.shape, generator=self.generator)
        back.weight.data = numbers[drawn]
        return back, nn.BatchNorm2d(self.written.whole)

    def _read(self, node: fx.Node, place: int = 0) -> _Channels:
        return self.channels[_operand(node, place)]

    def _layer(self, node: fx.Node) -> _Channels:
        name = str(node.target)
        layer, read = self.phase.get_submodule(name), self._read(node)
        if isinstance(layer, nn.Conv2d):
            self.last = layer
            self.layers[name], written = self._convolution(node, layer, read)
            return written
        if isinstance(layer, Norm):
            self.layers[name] = self._norm(layer, read)
        elif isinstance(layer, PASSING):
            self.layers[name] = copy.deepcopy(layer)
        else:
            raise Unsupported(f"leaf cannot narrow the layer {name} ({type(layer).__name__}) of a phase")
        return read

    def _convolution(self, node: fx.Node, conv: nn.Conv2d, read: _Channels) -> tuple[nn.Conv2d, _Channels]:
        if conv.groups == 1:
            factor = conv.out_channels / conv.in_channels
            wide = round(read.narrow * factor)
            narrow = wide if self._expands(node) else scaled(conv.out_channels, self.share)
            written = _Channels(conv.out_channels, min(conv.out_channels, narrow))
        elif conv.groups == conv.in_channels == conv.out_channels:
            written = read
        else:
            raise Unsupported(f"leaf cannot narrow a convolution in {conv.groups} groups ({node.target})")
        groups = 1 if conv.groups == 1 else written.narrow
        new = nn.Conv2d(
            read.narrow,
            written.narrow,
            _pair(conv.kernel_size),
            _pair(conv.stride),
            conv.padding if isinstance(conv.padding, str) else _pair(conv.padding),
            _pair(conv.dilation),
            groups,
            bias=conv.bias is not None,
            padding_mode=conv.padding_mode,
        )
        weight = conv.weight.detach()[self._indices(written)]
        new.weight.data = weight[:, self._indices(read)].clone() if conv.groups == 1 else weight
        if conv.bias is not None and new.bias is not None:
            new.bias.data = conv.bias.detach()[self._indices(written)]
        return new, written

    def _norm(self, norm: Norm, read: _Channels) -> nn.BatchNorm2d:
        new = nn.BatchNorm2d(read.narrow, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        for name, tensor in new.state_dict().items():
            if tensor.dim():
                tensor.copy_(getattr(norm, name).detach()[self._indices(read)])
        return new

    def _addition(self, graph: fx.Graph, node: fx.Node) -> _Channels:
        """Project the operand of more channels to those of the other."""
        first, second = self._read(node, 0), self._read(node, 1)
        if first == second:
            return first
        if first.whole != second.whole:
            raise Unsupported(f"leaf cannot narrow a sum of {first.whole} and {second.whole} channels")
        place, wide, narrow = (0, first, second) if first.narrow > second.narrow else (1, second, first)
        name = f"projection{len(self.layers)}"
        conv = nn.Conv2d(wide.narrow, narrow.narrow, 1, bias=False)
        identity = torch.eye(narrow.whole)  # what the shortcut computes in the whole phase
        conv.weight.data = identity[self._indices(narrow)][:, self._indices(wide), None, None].contiguous()
        self.layers[name] = nn.Sequential(conv, nn.BatchNorm2d(narrow.narrow))
        with graph.inserting_before(node):
            projected = graph.create_node("call_module", name, (_operand(node, place),))
        self.channels[projected] = narrow
        node.update_arg(place, projected)
        return narrow

    def _expands(self, node: fx.Node) -> bool:
        """Return whether a convolution's result goes to a depthwise convolution of its own block."""
        block, following = str(node.target).partition(".")[0], node
        while len(following.users) == 1:
            (following,) = following.users
            layer = self.phase.get_submodule(str(following.target)) if following.op == "call_module" else None
            if isinstance(layer, nn.Conv2d):
                same_block = str(following.target).partition(".")[0] == block
                return same_block and layer.groups == layer.in_channels > 1
            if layer is None and following.target not in PASSING_FUNCTIONS:
                return False
        return False

    def _indices(self, channels: _Channels) -> torch.Tensor:
        """Return which channels of the phase the shallow one keeps: the same ones wherever they are added."""
        if channels not in self._kept:
            order = torch.randperm(channels.whole, generator=self.generator)
            self._kept[channels] = order[: channels.narrow].sort().values
        return self._kept[channels]


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return first, second


def _operand(node: fx.Node, place: int) -> fx.Node:
    operand = node.args[place]
    assert isinstance(operand, fx.Node)
    return operand
