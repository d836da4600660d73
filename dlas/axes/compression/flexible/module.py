"""A network with shallow phases beside its own: its paths, one at a time or all together."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import fx, nn

from dlas.axes.compression.flexible.phases import Phase, find_phases
from dlas.axes.compression.flexible.shallow import shallow_phase
from dlas.errors import Unsupported

DEEP, SHALLOW = "0", "1"
"""A phase of a path: the network's own, or the shallow one."""


class FlexibleModule(nn.Module):
    """A network and its shallow phases.

    Parameters
    ----------
    legacy : torch.nn.Module
        The network; it always stays in evaluation mode, so that its batch norms keep their statistics.
    phases : sequence of Phase
    shallow : sequence of torch.nn.Module
        One for each phase.

    Attributes
    ----------
    active : str
        The path that it computes when it is called: at first the network's own.
    """

    def __init__(self, legacy: nn.Module, phases: Sequence[Phase], shallow: Sequence[nn.Module]) -> None:
        super().__init__()
        self.legacy = legacy
        self.shallow = nn.ModuleList(shallow)
        self.phases = tuple(phases)
        self.active = DEEP * len(self.phases)
        self._chain: _Chain | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy is made of: nodes of a traced network cannot be copied."""
        return {**self.__dict__, "_chain": None}

    @property
    def paths(self) -> list[str]:
        """All paths, the network's own first, in the order of binary numbers."""
        return ["".join(bits) for bits in itertools.product(DEEP + SHALLOW, repeat=len(self.phases))]

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the shallow phases."""
        super().train(mode)
        self.legacy.eval()
        return self

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Map images [n, c, h, w] to the outputs [n, classes] of the path :attr:`active`."""
        if SHALLOW in self.active:
            return self.outputs(images, [self.active])[self.active]
        outputs: torch.Tensor = self.legacy(images)
        return outputs

    def outputs(self, images: torch.Tensor, paths: Collection[str]) -> dict[str, torch.Tensor]:
        """Return the outputs [n, classes] of several paths; what they have in common is computed once."""
        self._chain = self._chain or _Chain.of(self.legacy, self.phases)
        return dict(self._chain.run(self, images, paths))

    def at(self, path: str) -> nn.Module:
        """Return the network at a path, which shares its tensors with this one.

        Layers of the network keep their names; a shallow phase has that of its phase's first module.

        Raises
        ------
        Unsupported
            If there is no such path.
        """
        self.check(path)
        tensors = (*self.legacy.parameters(), *self.legacy.buffers())
        module = copy.deepcopy(self.legacy, {id(tensor): tensor for tensor in tensors})
        for bit, phase, shallow in zip(path, self.phases, self.shallow, strict=True):
            if bit == SHALLOW:
                first, *others = phase.modules
                module.set_submodule(first, shallow)
                for name in others:
                    module.set_submodule(name, nn.Identity())
        return module.eval()

    def check(self, path: str) -> None:
        """Refuse what is no path of this network.

        Raises
        ------
        Unsupported
        """
        if len(path) != len(self.phases) or not set(path) <= {DEEP, SHALLOW}:
            names = [phase.name for phase in self.phases]
            raise Unsupported(
                f"path {path!r}: this network has {len(names)} phases ({', '.join(names)}), and a path has "
                f"one digit for each, {DEEP} or {SHALLOW} for shallow: {DEEP * len(names)} to "
                f"{SHALLOW * len(names)}"
            )


def flexible(legacy: nn.Module, share: float, seed: int) -> FlexibleModule:
    """Return a network with shallow phases at ``share`` of its channels, their weights drawn from its own.

    Raises
    ------
    Unsupported
        If the network has no phases, or one that cannot be narrowed.
    """
    phases = find_phases(legacy)
    shallow = [
        shallow_phase([legacy.get_submodule(name) for name in phase.modules], share, seed + number)
        for number, phase in enumerate(phases)
    ]
    return FlexibleModule(legacy, phases, shallow).eval()


class _Whole(fx.Tracer):
    """Traces a network with its phases as single calls."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether a module is one call of the graph."""
        return module_qualified_name in self._names or super().is_leaf_module(m, module_qualified_name)


@dataclass(frozen=True)
class _Chain:
    """A network as a chain of phases with other operators before, between and behind them."""

    nodes: list[fx.Node]
    """Of the traced network."""
    starts: Mapping[int, int]
    """Places of the first modules of phases, and which phases they are."""
    phases: tuple[Phase, ...]

    @classmethod
    def of(cls, legacy: nn.Module, phases: tuple[Phase, ...]) -> _Chain:
        """Return the chain of a network.

        Raises
        ------
        Unsupported
            If a phase is not all that connects what lies before it with what lies behind it.
        """
        names = {name for phase in phases for name in phase.modules}
        nodes = list(_Whole(names).trace(legacy).nodes)
        targets = [str(node.target) if node.op == "call_module" else "" for node in nodes]
        starts = {}
        for number, phase in enumerate(phases):
            place = targets.index(phase.modules[0]) if phase.modules[0] in targets else -1
            stop = place + len(phase.modules)
            behind = {read for node in nodes[stop:] for read in node.all_input_nodes}
            apart = tuple(targets[place:stop]) != phase.modules or behind & set(nodes[: stop - 1])
            if place < 0 or apart:
                raise Unsupported(f"leaf cannot replace {phase.name}: it is not a single link of the network")
            starts[place] = number
        return cls(nodes, starts, phases)

    def run(
        self, module: FlexibleModule, images: torch.Tensor, paths: Collection[str]
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield paths with their outputs."""
        (first,) = (node for node in self.nodes if node.op == "placeholder")
        yield from self._walk(module, self.nodes.index(first) + 1, {first: images}, "", paths)

    def _walk(
        self,
        module: FlexibleModule,
        place: int,
        values: dict[fx.Node, Any],
        prefix: str,
        paths: Collection[str],
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the outputs of the paths that begin with ``prefix``, from a place on."""
        while place not in self.starts:
            node = self.nodes[place]
            if node.op == "output":
                yield prefix, _given(node.args[0], values)
                return
            values[node] = _evaluated(module.legacy, node, values)
            place += 1
        number = self.starts[place]
        names = self.phases[number].modules
        read = values[self.nodes[place].all_input_nodes[0]]
        end = place + len(names)
        for bit in (DEEP, SHALLOW):
            if any(path.startswith(prefix + bit) for path in paths):
                if bit == SHALLOW:
                    written = module.shallow[number](read)
                else:
                    written = read
                    for name in names:
                        written = module.legacy.get_submodule(name)(written)
                yield from self._walk(module, end, {self.nodes[end - 1]: written}, prefix + bit, paths)


def _evaluated(legacy: nn.Module, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    """Return the value of a node of a traced network."""
    arguments, options = _given(node.args, values), _given(node.kwargs, values)
    if node.op == "call_module":
        return legacy.get_submodule(str(node.target))(*arguments, **options)
    if node.op == "call_method":
        return getattr(arguments[0], str(node.target))(*arguments[1:], **options)
    if node.op == "get_attr":
        owner, _, name = str(node.target).rpartition(".")
        return getattr(legacy.get_submodule(owner), name)
    assert callable(node.target)
    return node.target(*arguments, **options)


def _given(arguments: Any, values: Mapping[fx.Node, Any]) -> Any:
    return fx.node.map_arg(arguments, lambda node: values[node])
