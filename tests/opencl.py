"""Run modules scheduled for OpenCL by PyOpenCL: TVM's wheels bring no OpenCL runtime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl
import tvm
import tvm_ffi
from tvm import relax

from dlas.stack import Target
from tests.gpu_code import names, source, split

Array = npt.NDArray[Any]
GUARD = 4096
"""Bytes on both sides of an array that no kernel may write."""
UNSET = 0x7FC00000
"""What memory holds that nobody has written, plus the memory's number: as float32, not a number."""


def run(module: Any, arguments: Sequence[Array], target: Target) -> Array:
    """Return what ``main`` of a module scheduled for ``target`` computes.

    Raises
    ------
    AssertionError
        If a kernel writes outside its arrays, or the host computes anything.
    """
    device = Device(module, target)
    main = module["main"]
    values: dict[Any, Array] = dict(zip(main.params, arguments, strict=True))
    for block in main.body.blocks:
        for binding in block.bindings:
            values[binding.var] = _value(device, binding.value, values)
    return values[main.body.body]


def _value(device: Device, expression: Any, values: dict[Any, Array]) -> Array:
    """Return what one binding of ``main`` computes."""
    if isinstance(expression, relax.Var):
        return values[expression]
    shape = tuple(int(extent) for extent in expression.ty.shape)
    if expression.op.name == "relax.reshape":
        return values[expression.args[0]].reshape(shape)
    assert expression.op.name == "relax.call_tir", f"there is no kernel in {expression}"
    function, given = expression.args
    inputs = [values[variable] for variable in given.fields]
    return device.call(function.name_hint, inputs, shape, str(expression.ty.dtype))


class Device:
    """The first OpenCL device here, with the kernels of a module.

    Parameters
    ----------
    module : tvm.IRModule
        Its PrimFuncs are scheduled for ``target``.
    target : Target
    """

    def __init__(self, module: Any, target: Target) -> None:
        self._host, kernels = split(module, target)
        self._context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
        self._queue = cl.CommandQueue(self._context)
        program = cl.Program(self._context, source(kernels, target)).build()
        self._kernels = {name: cl.Kernel(program, name) for name in names(kernels)}

    def call(self, function: str, inputs: Sequence[Array], shape: Sequence[int], dtype: str) -> Array:
        """Return the output of a PrimFunc of (*inputs, output)."""
        output = np.empty(shape, dtype)
        memory = [_Memory(self._queue, a.nbytes, number) for number, a in enumerate((*inputs, output))]
        for each, array in zip(memory, inputs, strict=False):
            cl.enqueue_copy(self._queue, each.inside, np.ascontiguousarray(array))
        launches = _Launches(self._queue, self._kernels, memory)
        launches.visit(self._host[function].body)
        cl.enqueue_copy(self._queue, output, memory[-1].inside)
        assert all(each.is_guarded() for each in launches.memory.values()), f"{function} writes outside"
        return output


class _Memory:
    """An array between two guards."""

    def __init__(self, queue: cl.CommandQueue, size: int, number: int) -> None:
        self._queue, self._behind = queue, GUARD + size
        self._unset = np.full(2 * GUARD // 4 + -(-size // 4), UNSET + number, np.uint32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self._whole = cl.Buffer(queue.context, flags, hostbuf=self._unset)
        self.inside = self._whole.get_sub_region(GUARD, size)

    def is_guarded(self) -> bool:
        """Whether the guards are as they were."""
        found = np.empty_like(self._unset)
        cl.enqueue_copy(self._queue, found, self._whole)
        same = found.view(np.uint8) == self._unset.view(np.uint8)
        return bool(same[:GUARD].all() and same[self._behind :].all())


class _Launches:
    """Does what a host function does: names its arguments, allocates what lies between, launches."""

    def __init__(
        self, queue: cl.CommandQueue, kernels: dict[str, cl.Kernel], arguments: Sequence[_Memory]
    ) -> None:
        self._queue, self._kernels, self._arguments = queue, kernels, iter(arguments)
        self.memory: dict[Any, _Memory] = {}

    def visit(self, body: Any) -> None:
        """Walk over a function, in order."""
        handlers = [
            (tvm.tirx.DeclBuffer, self._declare),
            (tvm.tirx.AllocBuffer, self._allocate),
            (tvm.ir.Call, self._launch),
        ]
        tvm_ffi.structural_walk(body, handlers)

    def _declare(self, view: Any) -> None:
        is_view = _is_call(view.data, "tirx.buffer_data")
        self.memory[view.buffer] = self.memory[view.data.args[0]] if is_view else next(self._arguments)

    def _allocate(self, made: Any) -> None:
        elements = math.prod(int(extent) for extent in made.buffer.shape)
        itemsize = np.dtype(str(made.buffer.dtype)).itemsize
        self.memory[made.buffer] = _Memory(self._queue, elements * itemsize, len(self.memory))

    def _launch(self, call: Any) -> None:
        if not _is_call(call, "tirx.call_ffi_kernel"):
            return
        name, *values = call.args
        axes = [str(axis) for axis in call.attrs.launch_params]
        arrays, extents = values[: -len(axes)], dict(zip(axes, values[-len(axes) :], strict=True))
        group = [int(extents.get(f"threadIdx.{axis}", 1)) for axis in "xyz"]
        groups = [int(extents.get(f"blockIdx.{axis}", 1)) for axis in "xyz"]
        points = tuple(count * size for count, size in zip(groups, group, strict=True))
        buffers = [self.memory[array.args[0]].inside for array in arrays]
        self._kernels[str(name.value)](self._queue, points, tuple(group), *buffers)


def _is_call(expression: Any, operator: str) -> bool:
    """Whether an expression of TIR calls ``operator``."""
    called = isinstance(expression, tvm.ir.Call) and isinstance(expression.op, tvm.ir.Op)
    return called and bool(expression.op.name == operator)
