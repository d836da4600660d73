"""One program for many networks that share kernels and weights: a Relax function for each in one module."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tvm
import tvm_ffi
from safetensors.numpy import save_file
from tvm import relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator

from dlas.axes.compilers.programs.contents import CONTENTS
from dlas.axes.compilers.programs.tvm import LIBRARY, PARAMETERS, ScheduledNetwork, build_module
from dlas.lowering.target import write_library
from dlas.stack import Array, Target


@dataclass(frozen=True)
class JointModule:
    """Networks as functions of one module, which hold what they share once."""

    module: tvm.IRModule
    """A Relax function for each network, and the scheduled PrimFuncs that they call."""
    unscheduled: tvm.IRModule
    """The PrimFuncs before scheduling."""
    parameters: dict[str, Array]
    """By name; equal in content exists once."""
    functions: dict[str, list[str]]
    """The names of each function's parameters, in order."""
    kernels: dict[str, list[str]]
    """The names of each function's PrimFuncs."""

    def shared(self) -> float:
        """Return the share of the PrimFuncs of all networks that did not have to be added for them."""
        needed = sum(map(len, self.kernels.values()))
        distinct = {name for names in self.kernels.values() for name in names}
        return 1 - len(distinct) / needed if needed else 0.0


def join(networks: Iterable[tuple[str, ScheduledNetwork]]) -> JointModule:
    """Return networks as one module.

    Each was lowered and scheduled by itself, exactly as alone.  PrimFuncs that are structurally equal
    become one, and so do parameters of equal content.

    Parameters
    ----------
    networks : iterable of (str, ScheduledNetwork)
        With the names of their functions; one at a time is in memory where they are made one at a time.
    """
    union = _Union()
    for name, network in networks:
        union.add(name, network)
    return JointModule(
        union.builder.get(),
        tvm.IRModule(union.unscheduled),
        union.parameters,
        union.functions,
        union.kernels,
    )


def write_joined(joined: JointModule, target: Target, folder: Path) -> None:
    """Build networks that were joined, and write their library and parameters into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    built = build_module(joined.module, target, joined.unscheduled)
    write_library(built, folder / LIBRARY, target)
    save_file(joined.parameters, folder / PARAMETERS)
    (folder / CONTENTS).write_text(json.dumps({"functions": joined.functions}, indent=1))


@dataclass
class _Union:
    """Collects networks, and what they share once."""

    builder: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    unscheduled: dict[tvm.ir.GlobalVar, tirx.PrimFunc] = field(default_factory=dict)
    parameters: dict[str, Array] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)
    kernels: dict[str, list[str]] = field(default_factory=dict)
    _alike: dict[int, list[tuple[tirx.PrimFunc, tvm.ir.GlobalVar]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _digests: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, network: ScheduledNetwork) -> None:
        """Add a network as the function ``name``."""
        renamed: dict[str, tvm.ir.GlobalVar] = {}
        for variable, function in network.module.functions_items():
            if isinstance(function, tirx.PrimFunc):
                before = network.lowered.module[variable.name_hint]
                renamed[variable.name_hint] = self._kernel(variable.name_hint, function, before)
        main = _Renaming(self.builder.get(), renamed).visit_expr(network.module["main"])
        self.builder.add_func(main.with_attr("global_symbol", name), name)
        self.kernels[name] = sorted({variable.name_hint for variable in renamed.values()})
        parameters = network.lowered.parameters
        self.functions[name] = [self._parameter(*parameter) for parameter in parameters.items()]

    def _kernel(self, name: str, function: tirx.PrimFunc, before: tirx.PrimFunc) -> tvm.ir.GlobalVar:
        """Return the variable of a PrimFunc that is structurally equal, names aside."""
        nameless = function.without_attr("global_symbol")
        alike = self._alike[tvm_ffi.structural_hash(nameless)]
        for other, variable in alike:
            if tvm_ffi.structural_equal(nameless, other):
                return variable
        variable = self.builder.add_func(nameless, name)
        alike.append((nameless, variable))
        self.unscheduled[variable] = before
        return variable

    def _parameter(self, name: str, array: Array) -> str:
        """Return the name of a parameter of the same type, shape and content."""
        content = hashlib.sha256(f"{array.dtype} {array.shape}\n".encode())
        content.update(array.data)
        digest = content.hexdigest()
        if digest not in self._digests:
            unique = name if name not in self.parameters else f"{name}.{digest[:16]}"
            self._digests[digest] = unique
            self.parameters[unique] = array
        return self._digests[digest]


@mutator
class _Renaming(PyExprMutator):
    """Replaces the PrimFuncs that a function calls."""

    def __init__(self, module: tvm.IRModule, names: Mapping[str, tvm.ir.GlobalVar]) -> None:
        super().__init__(module)
        self.names = dict(names)

    def visit_global_var_(self, op: tvm.ir.GlobalVar) -> tvm.ir.GlobalVar:
        """Return the variable that stands for ``op``."""
        return self.names.get(op.name_hint, op)
