"""What is decided of a GPU's kernels before any is compiled, and what their source looks like."""

from __future__ import annotations

import re

import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.errors import Unsupported
from dlas.lowering.lower import schedule
from dlas.lowering.operators.gpu_limits import lacking, shared_bytes, threads_a_block
from dlas.lowering.operators.schedule import schedule_operators
from dlas.schedules.direct import Direct
from dlas.sparse.csr_direct import CsrDirect
from dlas.stack import Algorithm, Target
from dlas.testing.algorithms import lower_case
from dlas.testing.cases import CASES
from tests.fixtures.gpu_code import names, source, split
from tests.fixtures.targets import CUDA, CUDA_SM72, OPENCL

SHARED = Target({**CUDA.description, "max_shared_memory_per_block": 49_152}, 1)


def kernel(threads: int = 64, apart: int = 1, dtype: str = "float32") -> tvm.IRModule:
    """Return a kernel that copies through shared memory, one element a thread, ``apart`` places apart."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("copy")
        T.func_attr({"tirx.is_scheduled": True})
        x, y = (T.arg(name, T.Buffer((threads,), dtype)) for name in "xy")
        shared = threads * apart
        with T.sblock("root"):
            T.reads()
            T.writes()
            kept = T.sblock_alloc_buffer((shared,), dtype, scope="shared")
            with (
                T.thread_binding(0, 1, thread="blockIdx.x"),
                T.thread_binding(0, threads, thread="threadIdx.x") as i,
            ):
                with T.sblock("in"):
                    at = T.axis.spatial(threads, i)
                    T.reads(x[at])
                    T.writes(kept[0:shared])
                    T.buffer_store(kept, x[at], (at * apart,))
                with T.sblock("out"):
                    at = T.axis.spatial(threads, i)
                    T.reads(kept[0:shared])
                    T.writes(y[at])
                    T.buffer_store(y, kept[at * apart], (at,))
    return tvm.IRModule({"copy": builder.get()})


def test_threads_and_shared_memory_are_counted() -> None:
    assert threads_a_block(kernel(96)["copy"]) == 96
    assert shared_bytes(kernel(64, 1)["copy"]) == 4 * 64
    assert schedule_operators(kernel(), CUDA)


@pytest.mark.parametrize(
    ("module", "target", "reason"),
    [
        (kernel(2048), CUDA, "copy: 2048 threads a block, and the target allows 1024"),
        (kernel(512), Target({**OPENCL.description, "max_num_threads": 128}, 1), "allows 128"),
        (kernel(512), Target({**OPENCL.description, "max_threads_per_block": 128}, 1), "allows 128"),
        (kernel(1024, 20), SHARED, "copy: 81844 bytes of shared memory, and the target has 49152"),
        (kernel(dtype="bfloat16"), CUDA_SM72, "sm_72 does not compute in bfloat16, which sm_80 and newer do"),
        (kernel(dtype="bfloat16"), OPENCL, "OpenCL has no bfloat16"),
    ],
)
def test_what_a_gpu_cannot_run_is_told_before_it_is_built(
    module: tvm.IRModule, target: Target, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        schedule_operators(module, target)


def test_types_that_every_gpu_has_are_not_refused() -> None:
    for target in (CUDA, CUDA_SM72, OPENCL):
        assert not any(lacking(dtype, target) for dtype in ("float32", "float16", "int8", "uint8", "int32"))


def test_a_convolution_beyond_a_small_gpus_limit_has_a_reason_for_its_row() -> None:
    small = Target({**OPENCL.description, "max_num_threads": 128}, 1)
    with pytest.raises(Unsupported, match=r"conv_\w+: 256 threads a block, and the target allows 128"):
        schedule(lower_case(Direct(), CASES[0], target=small), small)


@pytest.mark.parametrize("algorithm", [Direct(), CsrDirect()], ids=["dense", "sparse"])
def test_a_kernels_source_sums_in_registers_on_threads(algorithm: Algorithm) -> None:
    name = "mostly zeros"
    (case,) = (case for case in CASES if case.conv.name == name)
    _, kernels = split(schedule(lower_case(algorithm, case, target=CUDA), CUDA), CUDA)
    text = source(kernels, CUDA)
    assert len(
        re.findall(r'extern "C" __global__ void __launch_bounds__\(\d+\) \w+\([^)]*\) \{', text)
    ) == len(names(kernels))
    assert "threadIdx.x" in text and "blockIdx.x" in text
    assert re.search(r"float \w*(conv|sums|tail)\w*\[\d+\];", text), "sums are in a thread's registers"
    assert "expf" not in text and "__shared__" not in text.replace("Hand", "")
