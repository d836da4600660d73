"""One run of a torch module, recorded: each operator that torch dispatches, and the layer it belongs to.

Torch dispatches the operators of a module's functions too, such as additions and
concatenations, which no hook of a module sees; and those of a backward pass, each on behalf
of an autograd node, whose number says which operator of the forward pass made it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.modules import module as hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from dlas.networks.layer_names import CallNames
from dlas.networks.torch.operators import Overload, address, describe_call, plain_name, tensors, tensors_read
from dlas.stack import Computation, NetworkOperator, Operator, TensorView

LOSS = "loss"
OPTIMIZER = "sgd"
"""Names of the layers of a training step that are outside the module."""
Time = Literal["latency_s", "backward_s"]
"""The field of a layer that an operator's time counts to."""


@dataclass(frozen=True)
class DispatchedOperator:
    """An operator that torch dispatched."""

    operator: Overload
    layer: int | None
    """Index of its layer; None where it belongs to none, such as a view."""
    time: Time
    """What its time counts to."""


@dataclass(frozen=True)
class TensorSource:
    """Where a tensor comes from."""

    layer: int | None = None
    """Index of the layer that wrote it; None for what the module was given."""
    views: tuple[TensorView, ...] = ()
    """Of what the layer wrote, in order: torch's name of each, and its shape."""


@dataclass(frozen=True)
class Recording:
    """What a run dispatched, in order."""

    layers: list[Operator]
    """Operators of the module without times, and ``loss`` and ``sgd`` of a training step."""
    dispatched: list[DispatchedOperator]
    read: list[list[TensorSource]]
    """Where the ``inputs`` of each layer come from."""

    def operators(self) -> list[NetworkOperator]:
        """Return the layers with ``reads`` and ``views``, which say what reads what."""
        return [
            {
                **layer,
                "reads": [origin.layer for origin in read],
                "views": [list(origin.views) for origin in read],
            }
            for layer, read in zip(self.layers, self.read, strict=True)
        ]


def record(module: nn.Module, run: Callable[[], object]) -> Recording | None:
    """Record what ``run`` does, which calls ``module`` and may then train it.

    Operators that return views of what they are given, or memory without content, are no layers.
    In a module without submodules the operator that reads its parameters has the module's
    name, or else its first operator: ``layer1.0.conv1``, and ``layer1.0.conv1#2`` at its second call.
    All others have their own name after the module's: ``layer1.0.add``.

    Parameters
    ----------
    run : callable
        Runs it; in a training step also loss, backward pass and optimizer.

    Returns
    -------
    Recording or None
        None if autograd was at work but torch dispatched no operator of a backward pass here.
    """
    recorder, before = _Recorder(module), sequence_number()
    with recorder.following_calls(), recorder:
        run()
    lost = sequence_number() > before and not recorder.went_back
    return None if lost else recorder.recording()


def sequence_number() -> int:
    """Return the number that autograd gives the next node that it makes in this thread."""
    return int(torch.autograd._get_sequence_nr())  # type: ignore[attr-defined]


class _Recorder(TorchDispatchMode):
    """Notes what torch dispatches, and for which call of a module."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        stored = itertools.chain(module.parameters(), module.buffers())
        self._stored = frozenset(map(address, stored)) - {0}
        self._modules = {each: name for name, each in module.named_modules()}
        self._calls: list[_Call | None] = []
        self._found: list[_Found] = []
        self._dispatched: list[DispatchedOperator] = []
        self._outside: dict[str, int] = {}
        self._makers: dict[int, int | None] = {}
        self._origins = WeakTensorKeyDictionary()
        self._readers: dict[int, int | None] = {}
        self._called = self.went_back = False

    @contextmanager
    def following_calls(self) -> Iterator[None]:
        """Know which module runs, while the context lasts."""
        # Hooks of all modules: if a module has hooks of its own, torch computes attention in another way.
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)
        try:
            yield
        finally:
            before.remove()
            after.remove()

    def __torch_dispatch__(
        self, func: Overload, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and note it."""
        # Autograd makes the node of an operator just before it has the operator dispatched.
        made = sequence_number() - 1
        node = torch._C._current_autograd_node()
        keywords = kwargs or {}
        result = func(*args, **keywords)
        if node is not None:
            self.went_back = True
            self._dispatched.append(DispatchedOperator(func, self._behind(node), "backward_s"))
            return result
        layer = None
        if self._calls and self._calls[-1]:
            layer = self._inside(self._calls[-1], func, args, keywords, result)
        elif func.namespace != "profiler":
            layer = self._beside(OPTIMIZER if self.went_back or not self._called else LOSS)
        self._makers.setdefault(made, layer)
        self._dispatched.append(DispatchedOperator(func, layer, "latency_s"))
        return result

    def recording(self) -> Recording:
        """Return what was noted, its layers named."""
        named: list[Operator] = [
            {"name": name, **found.layer} for name, found in zip(self._names(), self._found, strict=True)
        ]
        return Recording(named, self._dispatched, [found.read for found in self._found])

    def _enter(self, module: nn.Module, arguments: object) -> None:
        name = self._modules.get(module)
        if name is None:  # part of no module that is followed: a loss, or made for one call
            self._calls.append(self._calls[-1] if self._calls else None)
            return
        self._called = True
        leaf = all(child == "parametrizations" for child, _ in module.named_children())
        self._calls.append(_Call(name, leaf, frozenset(map(address, module.parameters(recurse=False))) - {0}))

    def _leave(self, module: nn.Module, arguments: object, result: object) -> None:
        self._calls.pop()

    def _inside(
        self, call: _Call, func: Overload, args: Sequence[Any], keywords: Mapping[str, Any], result: object
    ) -> int | None:
        """Return the index of an operator of the module; None if it is no layer."""
        layer = describe_call(func, args, keywords, result, self._stored)
        given = tensors_read(func, args, keywords, self._stored)
        read = [self._origins.get(tensor, TensorSource()) for tensor in given]
        index = len(self._found)
        origin = TensorSource(index) if layer else self._view(read, func, result)
        for tensor in tensors(result) if origin else ():
            self._origins[tensor] = origin
        if layer is None:
            return None
        addresses = {address(tensor) for tensor in tensors((args, keywords))}
        for parameter in addresses & self._stored:
            self._readers.setdefault(parameter, index)
        self._found.append(_Found(layer, call, plain_name(func), bool(addresses & call.parameters), read))
        return index

    def _view(self, read: Sequence[TensorSource], func: Overload, result: object) -> TensorSource | None:
        """Return the origin of what a call returns that is no layer; None where it has read no tensor."""
        written = next(tensors(result), None)
        if not read or written is None:
            return None
        view: TensorView = {"operator": plain_name(func), "output": list(written.shape)}
        return TensorSource(read[0].layer, (*read[0].views, view))

    def _beside(self, name: str) -> int:
        """Return the index of the layer of a step's operators outside the module."""
        if name not in self._outside:
            self._outside[name] = len(self._found)
            self._found.append(_Found({"operator": name}, None, name, False, []))
        return self._outside[name]

    def _behind(self, node: Any) -> int | None:
        """Return the layer that made an autograd node, or that reads what it stores the gradient of."""
        if hasattr(node, "variable"):
            return self._readers.get(address(node.variable))
        return self._makers.get(node._sequence_nr())

    def _names(self) -> list[str]:
        """Return the names of the layers."""
        chief: dict[_Call, int] = {}
        for index, found in enumerate(self._found):
            if found.call and found.call.leaf:
                best = chief.setdefault(found.call, index)
                if found.rank > self._found[best].rank:
                    chief[found.call] = index
        calls, taken = CallNames(), set(self._modules.values())
        return [
            calls.next(
                found.call.name if found.call and chief.get(found.call) == index else found.own_name(taken)
            )
            for index, found in enumerate(self._found)
        ]


@dataclass(frozen=True, eq=False)
class _Call:
    """A call of a module; a leaf has no submodules, and addresses are those of its own parameters."""

    name: str
    leaf: bool
    parameters: frozenset[int]


@dataclass(frozen=True)
class _Found:
    """A layer without its name, the call that it belongs to, torch's word for it, and what it reads."""

    layer: Computation
    call: _Call | None
    word: str
    reads_parameters: bool
    read: list[TensorSource]

    @property
    def rank(self) -> int:
        """How much it stands for its module: most with the parameters, least with a single number."""
        return 2 if self.reads_parameters else 1 if self.layer.get("output") else 0

    def own_name(self, taken: Collection[str]) -> str:
        """Return its name where it has not the module's, which is none of those taken."""
        name = f"{self.call.name}.{self.word}" if self.call and self.call.name else self.word
        return f"{name}()" if name in taken else name
