"""What a GPU cannot run, told before code is built: too many threads or too much memory a block, or types."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir import transform

from dlas.lowering.target import tvm_target
from dlas.schedules.loops.gpu_threads import most_threads
from dlas.stack import Target

FIRST_ARCHITECTURES = {"float16": 53, "bfloat16": 80, "float8": 89, "float4": 100}
"""CUDA's first architecture that computes with a type, by the beginning of its name."""
ABSENT_IN_OPENCL = ("bfloat16", "float8", "float4")


def beyond_limits(function: tirx.PrimFunc, target: Target) -> str | None:
    """Return why a scheduled function does not run on a GPU, or None.

    A driver refuses such kernels when they are launched, after everything is built, and
    a board may only say that something failed (DLAS paper, section 4.5).
    """
    limits = tvm_target(target).attrs
    threads, most = threads_a_block(function), most_threads(target)
    if threads > most:
        return f"{threads} threads a block, and the target allows {most}"
    shared = shared_bytes(function)
    if "max_shared_memory_per_block" in limits and shared > int(limits["max_shared_memory_per_block"]):
        return f"{shared} bytes of shared memory, and the target has {limits['max_shared_memory_per_block']}"
    return next((why for dtype in sorted(_types(function)) if (why := lacking(dtype, target))), None)


def threads_a_block(function: tirx.PrimFunc) -> int:
    """Return the threads of the largest thread block that a scheduled function launches."""
    return max((_threads(stage) for stage in _stages(function.body)), default=1)


def shared_bytes(function: tirx.PrimFunc) -> int:
    """Return the bytes of shared memory that a block of threads allocates, of the kernel with the most."""
    lowered = tvm.transform.Sequential(
        [
            transform.LowerCrossThreadReduction(),
            transform.LowerInitBlock(),
            transform.PlanAndUpdateBufferAllocationLocation(),
            transform.ConvertBlocksToOpaque(),
            transform.CompactBufferAllocation(),
        ]
    )(tvm.IRModule({"main": function}))["main"]
    return max((_shared(stage) for stage in _stages(lowered.body)), default=0)


def lacking(dtype: str, target: Target) -> str | None:
    """Return that a target does not compute with a type, or None."""
    if target.kind == "opencl":
        return f"OpenCL has no {dtype}" if dtype.startswith(ABSENT_IN_OPENCL) else None
    number = re.match(r"sm_(\d+)", str(target.description.get("arch", "")))
    first = next((arch for name, arch in FIRST_ARCHITECTURES.items() if dtype.startswith(name)), 0)
    if target.kind == "cuda" and number and int(number[1]) < first:
        return f"{target.description['arch']} does not compute in {dtype}, which sm_{first} and newer do"
    return None


def _stages(body: tirx.Stmt) -> Iterator[tirx.Stmt]:
    """Yield the outermost loops of a function: each becomes a kernel."""
    if isinstance(body, s_tir.SBlockRealize):
        yield from _stages(body.block.body)
    elif isinstance(body, tirx.SeqStmt):
        for stage in body.seq:
            yield from _stages(stage)
    else:
        yield body


def _threads(stage: tirx.Stmt) -> int:
    """Return the threads of a kernel's blocks: loops that are bound to one axis share its threads."""
    extents: dict[str, int] = {}

    def visit(loop: tirx.For) -> None:
        if loop.kind == tirx.ForKind.THREAD_BINDING and loop.thread_binding.thread_tag.startswith(
            "threadIdx"
        ):
            axis = str(loop.thread_binding.thread_tag)
            extents[axis] = max(extents.get(axis, 1), int(loop.extent))

    tvm_ffi.structural_walk(stage, (tirx.For, visit))
    return math.prod(extents.values())


def _shared(stage: tirx.Stmt) -> int:
    """Return the bytes of shared memory of a kernel's blocks."""
    total = 0

    def visit(block: s_tir.SBlock) -> None:
        nonlocal total
        for buffer in block.alloc_buffers:
            if buffer.scope().startswith("shared"):
                elements = math.prod(int(extent) for extent in buffer.shape)
                total += elements * tvm_ffi.dtype(str(buffer.dtype)).itemsize

    tvm_ffi.structural_walk(stage, (s_tir.SBlock, visit))
    return total


def _types(function: tirx.PrimFunc) -> set[str]:
    """Return the types of a function's arrays."""
    found: set[str] = set()

    def visit(block: s_tir.SBlock) -> None:
        found.update(str(region.source.dtype) for region in (*block.reads, *block.writes))

    tvm_ffi.structural_walk(function.body, (s_tir.SBlock, visit))
    return found
