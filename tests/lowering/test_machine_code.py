"""Machine code of processors: what lies on the stack, and that tiles take no memory from an allocator."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.machine_code import STACK_BYTES, build_functions, pipeline_of
from dlas.lowering.target import tvm_target
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.schedules.spatial_pack import SpatialPack
from dlas.schedules.winograd import Winograd
from dlas.sparse.bsr_direct import BsrDirect
from dlas.sparse.channel_index import ChannelIndex
from dlas.sparse.csr_direct import CsrDirect
from dlas.sparse.csr_gemm import CsrGemm
from dlas.sparse.csr_spatial_pack import CsrSpatialPack
from dlas.stack import BFLOAT16, Algorithm, Conv, Target, stored_type, to_bfloat16
from tests.fixtures.assembly import workspaces
from tests.fixtures.convolutions import BYTES, pruned
from tests.fixtures.targets import ARMV82, AVX2, AVX512, BF16, CUDA, DOTPROD, NEON

X86 = {"avx512": AVX512, "avx2": AVX2}
TARGETS: dict[str, dict[str, Target]] = {
    "float32": {**X86, "neon": NEON},
    "float16": {**X86, "fullfp16": ARMV82},
    "bfloat16": {**X86, "bf16": BF16},
    "bytes": {**X86, "dotprod": DOTPROD},
}
"""Processors with instructions for numbers of a type, and those without."""
TYPES: dict[str, dict[str, Any]] = {
    "float32": {},
    "float16": {"input_type": "float16", "weight_type": "float16"},
    "bfloat16": {"input_type": BFLOAT16, "weight_type": BFLOAT16},
    "bytes": BYTES,
}
ALGORITHMS: dict[str, Algorithm] = {
    "blocked": SpatialPack(layout="blocked"),
    "spatial_pack": SpatialPack(),
    "winograd blocked": Winograd(layout="blocked"),
    "winograd": Winograd(),
    "gemm": Gemm(),
    "direct": Direct(),
    "csr_direct": CsrDirect(),
    "csr_gemm": CsrGemm(),
    "csr_spatial_pack": CsrSpatialPack(),
    "bsr_direct": BsrDirect(),
    "channel_index": ChannelIndex(),
}
SAME = (1, 1, 1, 1)
CONVS = {
    "1x1": Conv("1x1", 1, 32, 14, 14, 32, 1, 1),
    "3x3": Conv("3x3", 1, 32, 14, 14, 32, 3, 3, padding=SAME),
    "3x3 / 2": Conv("3x3 / 2", 1, 32, 28, 28, 32, 3, 3, strides=(2, 2), padding=SAME),
    "depthwise": Conv("depthwise", 1, 32, 28, 28, 32, 3, 3, padding=SAME, groups=32),
    "stem": Conv("stem", 1, 3, 28, 28, 32, 7, 7, strides=(2, 2), padding=(3, 3, 3, 3)),
}
QUICK = (
    ("blocked", "1x1", "float32", "avx512"),
    ("winograd blocked", "3x3", "float32", "avx2"),
    ("blocked", "depthwise", "float32", "neon"),
    ("blocked", "3x3", "bfloat16", "avx512"),
    ("blocked", "1x1", "float16", "fullfp16"),
    ("gemm", "3x3", "bytes", "dotprod"),
    ("csr_direct", "3x3", "float32", "neon"),
    ("bsr_direct", "3x3", "bytes", "avx2"),
)
EVERY = [
    (name, types, target)
    for name, types in itertools.product(ALGORITHMS, TYPES)
    for target in TARGETS[types]
    if types != "bytes" or "winograd" not in name
]


def kernel_of(algorithm: Algorithm, conv: Conv, target: Target) -> ConvolutionKernel:
    weight = pruned(conv, 0.7)
    if conv.weight_type == BFLOAT16:
        weight = to_bfloat16(weight)
    elif conv.weight_type == "int8":
        weight = np.round(50 * weight).clip(-128, 127)
    return make_kernel(algorithm, conv, weight.astype(stored_type(conv.weight_type)), "main", target=target)


def check(algorithm: str, convs: Sequence[str], types: str, target: str) -> None:
    """Check that tiles take no memory from an allocator: what a whole task shares is larger."""
    on, functions = TARGETS[types][target], {}
    for conv in convs:
        kernel = kernel_of(ALGORITHMS[algorithm], replace(CONVS[conv], **TYPES[types]), on)
        if not kernel.declined:
            functions[conv] = schedule_kernel(kernel, on, kernel.space(on)[0])
    named = {name: f.with_attr("global_symbol", f"k{at}") for at, (name, f) in enumerate(functions.items())}
    assert named
    for size, loops in workspaces(build_functions(tvm.IRModule(named), on)):
        assert size > STACK_BYTES // 2 and loops == 1, "a thread's only loop there is over its tasks"


@pytest.mark.parametrize(("algorithm", "conv", "types", "target"), QUICK)
def test_the_best_tile_takes_no_memory_from_an_allocator(
    algorithm: str, conv: str, types: str, target: str
) -> None:
    check(algorithm, [conv], types, target)


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "types", "target"), EVERY)
def test_no_tile_takes_memory_from_an_allocator(algorithm: str, types: str, target: str) -> None:
    check(algorithm, list(CONVS), types, target)


@pytest.mark.parametrize("target", ["avx2", pytest.param("avx512", marks=pytest.mark.slow)])
def test_sums_of_a_narrower_tile_in_joined_rows_take_no_memory(target: str) -> None:
    conv, on = Conv("1x1", 1, 32, 56, 53, 32, 1, 1), X86[target]
    kernel = kernel_of(ALGORITHMS["blocked"], conv, on)
    rows = [(point, int(point["joined"])) for point in kernel.space(on)]
    tile = next(p for p, joined in rows if 1 < joined < conv.p and joined * conv.q % int(p["columns"]))
    built = build_functions(tvm.IRModule({"main": schedule_kernel(kernel, on, tile)}), on)
    assert workspaces(built) == [], "nothing is padded, and a tile's sums are in registers"


def test_allocations_are_found() -> None:
    kernel = kernel_of(ALGORITHMS["winograd blocked"], CONVS["3x3"], AVX2)
    best = schedule_kernel(kernel, AVX2, kernel.space(AVX2)[0])
    found = workspaces(tvm.tirx.build(best, target=tvm_target(AVX2)))
    assert len(found) > 4 and sum(size <= STACK_BYTES // 2 for size, _ in found) > 2
    assert {loops for _, loops in found} == {1}


def test_the_smallest_buffers_of_a_kernel_share_the_stack() -> None:
    sizes = (STACK_BYTES // 2, STACK_BYTES + 4, STACK_BYTES // 2 + 4, STACK_BYTES // 4)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("main")
        x = T.arg("x", T.Buffer((4096,), "float32"))
        with T.parallel(0, 4096) as i:
            for number, size in enumerate(sizes):
                shape = (size // 4,)
                buffer = IRBuilder.name(f"b{number}", T.sblock_alloc_buffer(shape, "float32", scope="local"))
                with T.serial(0, size // 4) as j:
                    T.buffer_store(buffer, x[j], [j])
                T.buffer_store(x, x[i] + buffer[i % 16], [i])
    built = build_functions(tvm.IRModule({"main": builder.get()}), AVX2)
    assert sorted(size for size, _ in workspaces(built)) == [STACK_BYTES // 2 + 4, STACK_BYTES + 4]


@pytest.mark.parametrize("name", ["blocked", "winograd", "gemm", "direct", "csr_direct", "channel_index"])
def test_a_gpu_keeps_sums_in_registers_of_threads(name: str) -> None:
    assert pipeline_of(CUDA) == "default" != pipeline_of(AVX2)
    kernel = kernel_of(ALGORITHMS[name], CONVS["3x3"], CUDA)
    for point in (None, *kernel.space(CUDA)[:1]):
        script = schedule_kernel(kernel, CUDA, point).script()
        assert re.search(r'(conv|products)_?\w* = T.sblock_alloc_buffer\(.*scope="local"\)', script)
