"""From scheduled kernels to machine code: TVM's passes, with small buffers of processors on the stack.

TVM takes memory for most buffers from a pool, each time that a thread starts a tile: a call costs as much
as hundreds of multiply-adds, and LLVM cannot keep what is in such memory in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir.transform import Pass, PassContext
from tvm.s_tir.pipeline import default_s_tir_pipeline

from dlas.lowering.target import tvm_target
from dlas.stack import Target

STACK_BYTES = 2**14
"""Most bytes of a thread's stack that the buffers of a kernel take, the smallest ones first."""
ON_STACK = "disable_lower_builtin"
"""TVM's annotation of an allocation that becomes no call to an allocator."""
PIPELINE = "dlas"
"""Name under which TVM knows its passes with :func:`keep_on_stack` among them."""


def build_functions(module: tvm.IRModule, target: Target) -> tvm.runtime.Executable:
    """Return scheduled PrimFuncs as a built module."""
    built: tvm.runtime.Executable = tvm.tirx.build(
        module, target=tvm_target(target), pipeline=pipeline_of(target)
    )
    return built


def pipeline_of(target: Target) -> str:
    """Return the name of TVM's passes for a target."""
    return "default" if target.on_gpu else PIPELINE


@tirx.transform.prim_func_pass(opt_level=0)
def keep_on_stack(function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext) -> tirx.PrimFunc:
    """Leave to LLVM the buffers of :func:`stack_buffers`, which it puts on the stack."""
    kept = stack_buffers(function.body)

    def marked(allocation: tirx.AllocBuffer) -> tirx.AllocBuffer:
        if not any(allocation.buffer.same_as(buffer) for buffer in kept):
            return allocation
        return tirx.AllocBuffer(
            allocation.buffer, {**allocation.annotations, ON_STACK: tirx.const(True, "bool")}
        )

    return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.AllocBuffer, marked)]))


def stack_buffers(body: tirx.Stmt) -> list[tirx.Buffer]:
    """Return the buffers of a kernel that stay on the stack: as many as fit into :data:`STACK_BYTES`."""
    buffers: list[tirx.Buffer] = []
    kept, left = [], STACK_BYTES
    tvm_ffi.structural_walk(body, (tirx.AllocBuffer, lambda allocation: buffers.append(allocation.buffer)))
    for buffer in sorted(buffers, key=_bytes):
        left -= _bytes(buffer)
        if left >= 0:
            kept.append(buffer)
    return kept


def size_of(shape: Sequence[Any], dtype: object) -> int:
    """Return the bytes of an array or of a buffer."""
    kind = tvm.DataType(str(dtype))
    return math.prod(map(int, shape)) * -(-int(kind.bits) * int(kind.lanes) // 8)


def _bytes(buffer: tirx.Buffer) -> int:
    """Return the size of a buffer; one known at run time only is larger than any stack."""
    if not all(isinstance(extent, tirx.IntImm) for extent in buffer.shape):
        return STACK_BYTES + 1
    return size_of(buffer.shape, buffer.dtype)


def _passes() -> tuple[Pass, object, object]:
    lower, finish_host, finish_device = default_s_tir_pipeline()
    return lower, lambda: tvm.transform.Sequential([keep_on_stack, finish_host()]), finish_device


tirx.register_tir_pipeline(PIPELINE, _passes)
