"""GPU schedules, checked without a GPU.

CUDA kernels go through NVIDIA's compiler, OpenCL kernels run on this machine's
processors.  Both tools come with the development requirements and need no driver.
"""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.lower import lower, schedule
from dlas.lowering.operators.schedule import schedule_operators
from dlas.stack import Algorithm, Target
from dlas.testing.algorithms import check_algorithm, lower_case, run_here
from dlas.testing.cases import CASES, Case
from tests.fixtures.algorithms import choices
from tests.fixtures.convolutions import cases
from tests.fixtures.gpu_code import check_compiles, compile_cuda, source, split
from tests.fixtures.operators import OPERATORS, network_of
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import CUDA, OPENCL

pytestmark = pytest.mark.slow

ON_GPUS = [name for name in OPERATORS if name != "cumulative sum"]


@pytest.fixture(params=choices())
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    chosen: Algorithm = request.param
    return chosen


def test_any_convolution_has_a_schedule(algorithm: Algorithm) -> None:
    @hypothesis.settings(
        max_examples=50, derandomize=True, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(cases())
    def check(case: Case) -> None:
        hypothesis.assume(algorithm.supports(case.conv) is None)
        schedule(lower_case(algorithm, case), OPENCL)

    check()


def test_convolutions_compile_for_cuda(algorithm: Algorithm, cuda: Target) -> None:
    kernels = {}
    for number, case in enumerate(CASES):
        if algorithm.supports(case.conv) is None:
            lowered = lower_case(algorithm, case, target=cuda)
            functions = dict(schedule(lowered, cuda).functions_items())
            for name, function in functions.items():
                if isinstance(function, tvm.tirx.PrimFunc):
                    kernels[f"{name.name_hint}_{number}"] = function
            for kernel in lowered.kernels.values():
                for point in kernel.space(cuda)[:1]:
                    kernels[f"{kernel.name}_{number}_tuned"] = schedule_kernel(kernel, cuda, point)
    check_compiles(tvm.IRModule(kernels), cuda)


def test_a_network_compiles_for_cuda(algorithm: Algorithm, cuda: Target) -> None:
    check_compiles(schedule(lower(network(), algorithm, 3), cuda), cuda)


@pytest.mark.parametrize("name", ON_GPUS)
def test_operators_compile_for_cuda(name: str, cuda: Target) -> None:
    check_compiles(schedule_operators(network_of(name), cuda), cuda)


@pytest.mark.usefixtures("nvrtc")
def test_a_kernel_that_is_no_cuda_does_not_compile() -> None:
    _, kernels = split(schedule_operators(network_of("mean"), CUDA), CUDA)
    text = source(kernels, CUDA)
    assert compile_cuda(text, CUDA)
    with pytest.raises(RuntimeError, match="no member"):
        compile_cuda(text.replace("blockIdx.x", "blockIdx.w"), CUDA)


@pytest.mark.timeout(900)  # a compiler for each kernel: minutes where other tests run beside it
def test_convolutions_are_right_on_opencl(algorithm: Algorithm, opencl: Any) -> None:
    assert len(check_algorithm(algorithm, OPENCL, run=opencl.run)) < len(CASES)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_network_is_right_on_opencl(algorithm: Algorithm, batch: int, opencl: Any) -> None:
    small, x = network(), images(batch)
    lowered = lower(small, algorithm, batch)
    y = opencl.run(schedule(lowered, OPENCL), [x, *lowered.parameters.values()], OPENCL)
    assert error(y, small.reference(x)) <= 10 * algorithm.tolerance


@pytest.mark.parametrize("name", ON_GPUS)
def test_operators_are_right_on_opencl(name: str, opencl: Any) -> None:
    module = network_of(name)
    x = np.random.default_rng(0).standard_normal((1, 32, 32, 32)).astype(np.float32)
    y = opencl.run(schedule_operators(module, OPENCL), [x], OPENCL)
    np.testing.assert_allclose(y, run_here(module, [x]), rtol=1e-4, atol=1e-4)


def test_writing_outside_an_array_is_noticed(opencl: Any) -> None:
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("copy")
        x, y = (T.arg(name, T.Buffer((8,), "float32")) for name in "xy")
        with T.thread_binding(0, 16, thread="threadIdx.x") as i:
            T.buffer_store(y, x[i], (i,))
    device = opencl.Device(tvm.IRModule({"copy": builder.get()}), OPENCL)
    with pytest.raises(AssertionError, match="copy writes outside"):
        device.call("copy", [np.ones(8, np.float32)], (8,), "float32")
