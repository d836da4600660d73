"""Scheduled kernels as plain functions of pointers, and the functions that call them.

TVM's own last steps wrap a kernel for its runtime: it checks its arguments, takes memory from a pool and
starts threads.  Here a kernel's buffers become pointers, its loops run on one thread, and what does not
fit on the stack lies in a workspace, whose pointer is the kernel's last argument.
"""

from __future__ import annotations

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import PointerType, PrimType

from dlas.lowering.machine_code import size_of, stack_buffers
from dlas.lowering.webassembly.halves import compare_in_float32, convert_by_integers
from dlas.lowering.webassembly.plan import CallPlan, Place
from dlas.stack.engine import aligned

RUN, CALL = "run", "call"
"""The functions that a host calls, see :class:`dlas.stack.engine.WasmModule`."""


def lower_kernels(kernels: Mapping[str, tirx.PrimFunc], target: tvm.target.Target) -> tvm.IRModule:
    """Return scheduled kernels without blocks, layouts and vectors: TVM's passes for one thread.

    They are those of ``tvm.s_tir.pipeline.default_s_tir_pipeline`` that concern processors, up to
    where it divides functions between host and device.
    """
    module = tvm.IRModule(
        {name: _on_one_thread(kernel).with_attr("global_symbol", name) for name, kernel in kernels.items()}
    )
    with target:
        passes = [
            tirx.transform.BindTarget(target.with_host(target)),
            s_tir.transform.CanonicalizeLoop(),
            s_tir.transform.LowerInitBlock(),
            s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
            s_tir.transform.ConvertBlocksToOpaque(),
            s_tir.transform.CompactBufferAllocation(),
            s_tir.transform.LowerMatchBuffer(),
            s_tir.transform.StmtSimplify(),
            s_tir.transform.AnnotateIrregularLoop(),
            s_tir.transform.LowerOpaqueBlock(),
            tirx.transform.FlattenBuffer(),
            tirx.transform.BF16ComputeLegalize(),
            tirx.transform.NarrowDataType(32),
            s_tir.transform.LoopPartition(),
            tirx.transform.VectorizeLoop(True),
            tirx.transform.StorageRewrite(),
            s_tir.transform.HoistIfThenElse(),
            tirx.transform.UnrollLoop(),
            s_tir.transform.RenormalizeSplitPattern(),
            tirx.transform.StmtSimplify(),
            tirx.transform.RemoveNoOp(),
            s_tir.transform.RewriteUnsafeSelect(),
            tirx.transform.CommonSubexprElim(),
            tirx.transform.FP8ComputeLegalize(),
        ]
        return tvm.transform.Sequential(passes)(module)


def finish(functions: Mapping[str, tirx.PrimFunc], target: tvm.target.Target) -> tvm.IRModule:
    """Return functions ready for code generation."""
    passes = [
        tirx.transform.FP8StorageLegalize(),
        tirx.transform.BF16StorageLegalize(),
        tirx.transform.LowerIntrin(),
    ]
    with target:
        converted = {
            name: convert_by_integers(compare_in_float32(function)) for name, function in functions.items()
        }
        return tvm.transform.Sequential(passes)(tvm.IRModule(converted))


def with_pointers(kernel: tirx.PrimFunc, name: str, target: tvm.target.Target) -> tuple[tirx.PrimFunc, int]:
    """Return a lowered kernel as a function of pointers, and the bytes of workspace that it needs."""
    kept = stack_buffers(kernel.body)
    workspace = tirx.Var("workspace", PointerType(PrimType("uint8"), "global"))
    taken = 0

    def carved(allocation: tirx.AllocBuffer) -> tirx.Stmt:
        nonlocal taken
        buffer = allocation.buffer
        if any(buffer.same_as(each) for each in kept):
            return allocation
        pointer = PointerType(PrimType(str(buffer.dtype)), "global")
        at, taken = taken, aligned(taken + size_of(buffer.shape, buffer.dtype))
        return tirx.DeclBuffer(buffer, data=tirx.reinterpret(pointer, _further(workspace, at)))

    body = tvm_ffi.structural_map(kernel.body, [(tirx.AllocBuffer, carved)])
    pointers = [
        tirx.Var(f"{buffer.name}_pointer", PointerType(PrimType(str(buffer.dtype)), "global"))
        for buffer in kernel.params
    ]
    declared = [
        tirx.DeclBuffer(buffer, data=pointer) for buffer, pointer in zip(kernel.params, pointers, strict=True)
    ]
    # TVM's code generation ends every function by returning the integer 0.
    function = tirx.PrimFunc([*pointers, workspace], tirx.SeqStmt([*declared, body]), PrimType("int32"))
    return _named(function.with_attr("tirx.noalias", True), name, target), taken


def callers(plan: CallPlan, workspace: int, target: tvm.target.Target) -> dict[str, tirx.PrimFunc]:
    """Return the functions that run all calls of a plan, or one of them.

    Parameters
    ----------
    workspace : int
        Offset in memory of what kernels need beside their arguments.
    """
    byte = PointerType(PrimType("uint8"), "global")
    parameters, memory = tirx.Var("parameters", byte), tirx.Var("memory", byte)
    which, times = tirx.Var("which", "int32"), tirx.Var("times", "int32")
    areas = {"parameters": parameters, "memory": memory}

    def call(kernel: str, places: list[Place]) -> tirx.Stmt:
        pointers = [_further(areas[place.area], place.offset) for place in places]
        return tirx.Evaluate(tirx.call_extern("int32", kernel, *pointers, _further(memory, workspace)))

    def repeated(body: tirx.Stmt) -> tirx.Stmt:
        return tirx.For(tirx.Var("time", "int32"), 0, times, tirx.ForKind.SERIAL, body)

    statements = [call(kernel, places) for kernel, places in plan.calls]
    choices = [
        tirx.IfThenElse(tirx.EQ(which, tirx.const(number, "int32")), repeated(statement), None)
        for number, statement in enumerate(statements)
    ]
    int32 = PrimType("int32")
    functions = {
        RUN: tirx.PrimFunc([parameters, memory, times], repeated(_sequence(statements)), int32),
        CALL: tirx.PrimFunc([parameters, memory, which, times], _sequence(choices), int32),
    }
    return {name: _named(function, name, target) for name, function in functions.items()}


def _on_one_thread(kernel: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a kernel whose parallel loops run one turn after the other."""

    def serial(loop: tirx.For) -> tirx.For:
        if loop.kind != tirx.ForKind.PARALLEL:
            return loop
        kind = tirx.ForKind.SERIAL
        return tirx.For(loop.loop_var, loop.min, loop.extent, kind, loop.body, None, loop.annotations)

    return kernel.with_body(tvm_ffi.structural_map(kernel.body, [(tirx.For, serial)]))


def _named(function: tirx.PrimFunc, name: str, target: tvm.target.Target) -> tirx.PrimFunc:
    """Return a function with what TVM's code generation asks of one for the host."""
    attributes = {"global_symbol": name, "target": target, "calling_conv": 0, "tirx.is_host_func": True}
    for key, value in attributes.items():
        function = function.with_attr(key, value)
    return function


def _sequence(statements: list[tirx.Stmt]) -> tirx.Stmt:
    return statements[0] if len(statements) == 1 else tirx.SeqStmt(statements)


def _further(pointer: tirx.Var, offset: int) -> tirx.PrimExpr:
    """Return the pointer so many bytes further."""
    return tvm.tirx.op.handle_add_byte_offset(pointer, tirx.const(offset, "int32"))
