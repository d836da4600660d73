"""The calls of an inference and the places of its arrays, all known before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import tvm
from tvm import relax, tirx

from dlas.errors import Unsupported, one_line
from dlas.lowering.machine_code import size_of
from dlas.stack import Array
from dlas.stack.engine import ModuleTensor, aligned

VIEWS = ("relax.reshape", "relax.memory.ensure_zero_offset")
"""Operators whose result lies where their input does. A *kernel* may be called reshape too, and is none."""
ENDS = ("relax.memory.kill_tensor", "relax.memory.kill_storage")


@dataclass(frozen=True)
class Place:
    """Where an argument of a kernel lies."""

    area: Literal["parameters", "memory"]
    offset: int
    """In bytes from the start of the area."""


@dataclass
class CallPlan:
    """The calls of an inference on places."""

    calls: list[tuple[str, list[Place]]] = field(default_factory=list)
    memory_bytes: int = 0
    inputs: list[ModuleTensor] = field(default_factory=list)
    output: ModuleTensor | None = None
    parameters: list[Array] = field(default_factory=list)
    """In the order of their places."""

    def reserve(self, size: int) -> int:
        """Return the offset of so many bytes of memory that nothing else uses."""
        offset = self.memory_bytes
        self.memory_bytes = aligned(offset + size)
        return offset

    def parameter(self, array: Array) -> Place:
        """Add a parameter, and return its place."""
        place = Place("parameters", self.parameters_bytes)
        self.parameters.append(np.ascontiguousarray(array))
        return place

    @property
    def parameters_bytes(self) -> int:
        """Bytes of all parameters."""
        return sum(aligned(array.nbytes) for array in self.parameters)

    def input(self, shape: Sequence[int], dtype: str) -> Place:
        """Add an input, and return its place."""
        tensor = ModuleTensor(self.reserve(size_of(shape, dtype)), tuple(shape), dtype)
        self.inputs.append(tensor)
        return Place("memory", tensor.offset)


def plan_network(module: tvm.IRModule, parameters: Sequence[Array]) -> CallPlan:
    """Return the plan of ``main``, whose kernels write into arrays that Relax has planned.

    Parameters
    ----------
    module : tvm.IRModule
        After Relax's passes up to StaticPlanBlockMemory.
    parameters : sequence of array
        Those of ``main`` after its first, the images.

    Raises
    ------
    Unsupported
        If an operator is no call of a kernel: such a network has no plan.
    """
    main = module["main"]
    plan, places = CallPlan(), dict[Any, Any]()
    storages: dict[Any, int] = {}
    images, *others = main.params
    places[images] = plan.input(_shape(images), str(images.ty.dtype))
    for variable, array in zip(others, parameters, strict=True):
        places[variable] = plan.parameter(array)

    def place_of(argument: Any) -> Any:
        if isinstance(argument, relax.Tuple):
            return [place_of(each) for each in argument.fields]
        if isinstance(argument, tvm.ir.GenericConst):
            return plan.parameter(argument.value.numpy())
        return places[argument]

    for binding in (binding for block in main.body.blocks for binding in block.bindings):
        variable, value = binding.var, binding.value
        if isinstance(value, relax.TupleGetItem):
            places[variable] = places[value.tuple_value][value.index]
            continue
        if not isinstance(value, relax.Call):
            places[variable] = place_of(value)
            continue
        name = getattr(value.op, "name", None)
        if isinstance(value.op, tvm.ir.GlobalVar):
            plan.calls.append((value.op.name_hint, [place_of(argument) for argument in value.args]))
        elif name == "relax.memory.alloc_storage":
            storages[variable] = plan.reserve(int(value.args[0].values[0]))
        elif name == "relax.memory.alloc_tensor":
            places[variable] = Place("memory", storages[value.args[0]] + int(value.args[1].value))
        elif name == "relax.builtin.alloc_tensor":  # the output, which Relax does not plan
            size = size_of(value.args[0].values, value.args[1].value)
            places[variable] = Place("memory", plan.reserve(size))
        elif name in VIEWS or _is_view(value):
            places[variable] = place_of(value.args[0])
        elif name not in ENDS:
            raise Unsupported(f"WebAssembly runs kernels alone, and none computes {one_line(str(value))}")
    result = main.body.body
    plan.output = ModuleTensor(places[result].offset, _shape(result), str(result.ty.dtype))
    return plan


def plan_kernel(name: str, kernel: tirx.PrimFunc) -> CallPlan:
    """Return the plan of a single call, whose last argument is its output and whose others are inputs."""
    plan = CallPlan()
    places = [plan.input(tuple(map(int, each.shape)), str(each.dtype)) for each in kernel.params]
    plan.calls.append((name, places))
    plan.output = plan.inputs.pop()
    return plan


def _shape(variable: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in variable.ty.shape)


def _is_view(call: relax.Call) -> bool:
    """Whether a call is of the runtime's own function that makes a view."""
    called = call.args[0] if getattr(call.op, "name", None) == "relax.call_packed" else call.op
    return isinstance(called, relax.ExternFunc) and called.global_symbol == "vm.builtin.reshape"
