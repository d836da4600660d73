"""Dense convolutions on GPUs: which tiles fit a target, and what their kernels do."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import tvm
from tvm_ffi import structural_equal

from dlas.lowering.kernels.convolutions import make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.operators.gpu_limits import beyond_limits, shared_bytes, threads_a_block
from dlas.lowering.tuning.workload import Workload
from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.schedules.loops.thread_blocks import POINTS, SHARED_BYTES, BlockTile
from dlas.stack import Algorithm, Conv, Target
from tests.fixtures.convolutions import SQUARE, pruned
from tests.fixtures.gpu_code import source, split
from tests.fixtures.targets import CUDA, OPENCL

SMALL_GPU = Target({**OPENCL.description, "max_threads_per_block": 64}, 1)
LATE = replace(SQUARE, n=1, c=256, h=14, w=14, k=256)
ALGORITHMS = [Direct(), Gemm()]


@pytest.mark.parametrize("target", [CUDA, SMALL_GPU], ids=["cuda", "small"])
@pytest.mark.parametrize("conv", [SQUARE, LATE], ids=["square", "late"])
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_tiles_respect_the_target(algorithm: Algorithm, conv: Conv, target: Target) -> None:
    space = algorithm.space(conv, target)
    assert 0 < len(space) <= POINTS
    kernel = make_kernel(algorithm, conv, pruned(conv, 0.0), "main")
    tile = BlockTile.of(space[0])
    scheduled = schedule_kernel(kernel, target, space[0])
    assert beyond_limits(scheduled, target) is None
    assert threads_a_block(scheduled) == tile.threads
    assert 0 < shared_bytes(scheduled) <= SHARED_BYTES


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_a_block_of_threads_reads_shared_memory_between_two_barriers(algorithm: Algorithm) -> None:
    kernel = make_kernel(algorithm, LATE, pruned(LATE, 0.0), "main")
    scheduled = schedule_kernel(kernel, CUDA, algorithm.space(LATE, CUDA)[0])
    text = source(split(tvm.IRModule({"main": scheduled}), CUDA)[1], CUDA)
    assert len(re.findall(r"__shared__ (?:alignas\(\d+\) )?float", text)) == 2, "inputs and weights"
    assert text.count("__syncthreads()") == 2


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_a_point_can_be_recorded_and_replayed(algorithm: Algorithm) -> None:
    kernel = make_kernel(algorithm, LATE, pruned(LATE, 0.0), "main")
    workload, point = Workload.of(kernel), algorithm.space(LATE, CUDA)[-1]
    chosen = workload.apply(point, CUDA)
    assert structural_equal(workload.replay(workload.trace_of(chosen)).mod, chosen.mod)


def test_convolutions_in_groups_keep_the_minimal_schedule() -> None:
    depthwise = replace(SQUARE, groups=SQUARE.c, k=SQUARE.c)
    assert not any(list(algorithm.space(depthwise, CUDA)) for algorithm in ALGORITHMS)
