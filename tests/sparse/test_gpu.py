"""Sparse convolutions on GPUs: what a thread does, which tiles fit, and both compilers that use them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T
from tvm_ffi import structural_equal

from dlas.axes.compilers.hand import Hand
from dlas.axes.compilers.metaschedule import MetaSchedule
from dlas.axes.compilers.programs.tvm import TvmCompiler
from dlas.axes.hardware.drivers.local import Local
from dlas.bench.processes.workers import Handlers, Reply
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import run_passes, schedule_kernel
from dlas.lowering.tuning import measurers
from dlas.lowering.tuning.local_runner import LocalRunner
from dlas.lowering.tuning.workload import MAIN, Workload
from dlas.networks.torch.network import TorchNetwork
from dlas.schedules.loops import gpu_threads
from dlas.sparse.bsr_direct import BsrDirect
from dlas.sparse.compressed import thread_tiles
from dlas.sparse.compressed.blocks import block
from dlas.sparse.compressed.gpu_padding import element
from dlas.sparse.compressed.padding import write_planes
from dlas.sparse.compressed.rows import SparseRows
from dlas.sparse.csr_direct import CsrDirect
from dlas.stack import Bench, Conv, Decisions, Layer, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST, check_case, lower_case, run_here
from dlas.testing.cases import Case
from tests.fixtures.convolutions import SQUARE, UNEVEN, pruned
from tests.fixtures.gpu_code import check_compiles
from tests.fixtures.small_network import error, images, network
from tests.fixtures.targets import CUDA, OPENCL
from tests.fixtures.tiled import bench

SMALL_GPU = Target({**OPENCL.description, "max_threads_per_block": 64}, 1)
BATCH = replace(SQUARE, n=4, h=28, w=28)
ALGORITHMS: list[SparseRows] = [
    part
    for name in parts.names("algorithm")
    if isinstance(part := parts.make("algorithm", name, {}), SparseRows)
] + [BsrDirect(size=3)]


@pytest.fixture(params=ALGORITHMS, ids=str)
def algorithm(request: pytest.FixtureRequest) -> SparseRows:
    chosen: SparseRows = request.param
    return chosen


def kernel_of(algorithm: SparseRows, conv: Conv) -> ConvolutionKernel:
    """Return the kernel of a convolution of which nine weights in ten are zero."""
    return make_kernel(algorithm, conv, pruned(conv, 0.9), "main")


def points(algorithm: SparseRows, conv: Conv, target: Target) -> list[Decisions | None]:
    """Return the minimal schedule, first and last point, and those with most lines and filters a thread."""
    space = algorithm.space(conv, target)
    large = [max(space, key=itemgetter(name)) for name in ("lines", "filters")]
    return [None, space[0], *large, space[-1]]


def test_the_loop_over_a_row_is_inside_a_thread(algorithm: SparseRows) -> None:
    kernel = kernel_of(algorithm, SQUARE)
    for point in points(algorithm, SQUARE, CUDA):
        script = schedule_kernel(kernel, CUDA, point).script()
        before, end, _ = re.split(r"in range\((packed2\[.*)\):", script)
        assert re.fullmatch(r"packed2\[.* \+ 1\] - packed2\[.*\]", end)
        assert 'thread="threadIdx.x"' in before.rpartition("blockIdx.x")[2]
        assert " if v_entry" not in script and "reduce_scope" not in script
        scopes = dict(re.findall(r"(products|sums)\w* = T.sblock_alloc_buffer\(.*scope=\"(\w+)\"", script))
        assert scopes == {"products": "local", "sums": "local"}


def test_every_number_of_the_input_is_laid_out_by_a_thread(algorithm: SparseRows) -> None:
    script = schedule_kernel(kernel_of(algorithm, SQUARE), CUDA).script()
    _, _, padding = script.partition("planes = ")
    first, second, *_ = padding.split('thread="blockIdx.x"')[1:]
    assert "T.if_then_else" in first and 'T.sblock("pad")' in first
    assert "for " not in first.partition("threadIdx.x")[2].partition("T.if_then_else")[0]
    assert "T.if_then_else" not in second


@pytest.mark.parametrize(
    "conv",
    [UNEVEN, SQUARE, replace(UNEVEN, dilation=(1, 2), padding=(2, 1, 0, 3), padding_value=1.5)],
    ids=["uneven", "square", "dilated"],
)
def test_a_number_laid_by_itself_is_the_one_that_copies_lay(algorithm: SparseRows, conv: Conv) -> None:
    planes = algorithm.planes(conv)
    numbers = conv.c * planes.channel
    shape = (conv.n, planes.slabs, numbers)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("both")
        x = T.arg("x", T.Buffer(conv.input_shape, conv.input_type))
        copied, tested = (T.arg(name, T.Buffer(shape, conv.input_type)) for name in ("copied", "tested"))
        laid = write_planes(planes, x)
        with block("both", {"n": conv.n, "slab": planes.slabs, "place": numbers}) as at:
            T.buffer_store(copied, laid[tuple(at)], at)
            T.buffer_store(tested, element(planes, x, *at), at)
    both = tvm.tirx.build(tvm.IRModule({"both": builder.get()}), target="llvm")
    image = np.random.default_rng(0).standard_normal(conv.input_shape).astype(np.float32)
    arrays = [tvm.runtime.tensor(each) for each in (image, *np.full((2, *shape), np.nan, np.float32))]
    both["both"](*arrays)
    copied, tested = (array.numpy()[..., places_read(planes)] for array in arrays[1:])
    np.testing.assert_array_equal(tested, copied)


def places_read(planes: Any) -> np.ndarray:
    """Return the places of a slab that outputs read."""
    band = planes.band
    rows = np.arange(band.rows if planes.slabs > 1 else planes.conv.p)[:, None] * band.pitch
    places = (rows + np.arange(band.columns)).ravel()
    return np.unique(planes.offsets().ravel()[:, None] + places)


def test_sums_start_before_a_loop_that_may_be_empty() -> None:
    case = Case(replace(UNEVEN, name="empty rows"), bias=True, sparsity=0.99)
    lowered = lower_case(CsrDirect(), case)
    (kernel,) = lowered.kernels.values()
    variable = lowered.module.get_global_var(kernel.name)
    module = tvm.IRModule(dict(lowered.module.functions))
    ended = run_passes(kernel, tvm.IRModule({kernel.name: kernel.function}), HOST)[kernel.name]
    assert "in range(packed2[" in ended.script()
    module.update_func(variable, ended)
    x = np.random.default_rng(0).standard_normal(UNEVEN.input_shape).astype(np.float32)
    arguments = [x, *lowered.parameters.values()]
    np.testing.assert_allclose(
        run_here(module, arguments), run_here(lowered.module, arguments), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("target", [CUDA, OPENCL, SMALL_GPU], ids=["cuda", "opencl", "small"])
@pytest.mark.parametrize("conv", [SQUARE, BATCH, UNEVEN], ids=["square", "batch", "uneven"])
def test_tiles_respect_the_target(algorithm: SparseRows, conv: Conv, target: Target) -> None:
    most, space = gpu_threads.most_threads(target), algorithm.space(conv, target)
    assert 0 < len(space) <= thread_tiles.POINTS
    for point in space:
        tile = thread_tiles.ThreadTile(**{name: int(value) for name, value in point.items()})
        assert tile.block(algorithm.height) <= most
        assert tile.images * tile.lines * tile.filters <= thread_tiles.SUMS
    assert len({tuple(point.items()) for point in space}) == len(space)


@pytest.mark.parametrize("target", [CUDA, SMALL_GPU], ids=["cuda", "small"])
def test_threads_of_a_kernel_are_those_of_its_tile(algorithm: SparseRows, target: Target) -> None:
    kernel = kernel_of(algorithm, BATCH)
    for point in points(algorithm, BATCH, target)[1:]:
        assert point is not None
        script = schedule_kernel(kernel, target, point).script()
        _, _, products = script.rpartition('T.sblock("pad")')
        threads = {axis: int(extent) for extent, axis in re.findall(THREADS, products)}
        block_of = threads["threadIdx.x"] * threads["threadIdx.y"]
        assert block_of == thread_tiles.ThreadTile(**point).block(algorithm.height)  # type: ignore[arg-type]
        assert threads["vthread.x"] == int(point["images"]) * int(point["lines"])
        assert 'scope="shared"' not in script


THREADS = r"T.thread_binding\((\d+), thread=\"([\w.]+)\"\)"


def test_a_value_is_read_once_for_many_outputs_where_there_are_enough() -> None:
    many, few = (CsrDirect().space(conv, CUDA)[0] for conv in (replace(BATCH, n=16), SQUARE))
    assert int(many["images"]) * int(many["lines"]) > 1
    assert int(few["images"]) * int(few["lines"]) == 1, "threads would be too few"
    assert BsrDirect().space(replace(BATCH, n=16), CUDA)[0]["filters"] == 4


@pytest.mark.parametrize("target", [CUDA, OPENCL], ids=["cuda", "opencl"])
def test_a_point_can_be_recorded_and_replayed(algorithm: SparseRows, target: Target) -> None:
    kernel = kernel_of(algorithm, SQUARE)
    workload = Workload.of(kernel)
    for point in points(algorithm, SQUARE, target)[1:]:
        assert point is not None
        chosen = workload.apply(point, target)
        replayed = workload.replay(workload.trace_of(chosen))
        assert structural_equal(replayed.mod, chosen.mod)
        expected = schedule_kernel(kernel, target, point)
        expected = expected.with_attr("global_symbol", MAIN).without_attr("op_pattern")
        assert structural_equal(workload.finish(replayed, target), expected)


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("conv", [SQUARE, replace(BATCH, strides=(2, 2))], ids=["square", "strided"])
def test_every_point_compiles_for_cuda(algorithm: SparseRows, conv: Conv) -> None:
    kernel = kernel_of(algorithm, conv)
    space = algorithm.space(conv, CUDA)
    functions = {f"point{i}": schedule_kernel(kernel, CUDA, point) for i, point in enumerate(space)}
    check_compiles(tvm.IRModule(functions), CUDA)


@pytest.mark.slow
def test_points_from_all_over_the_space_are_right_on_opencl(algorithm: SparseRows, opencl: Any) -> None:
    case = Case(replace(UNEVEN, n=4), bias=True, activation="relu", sparsity=0.9)
    assert check_case(algorithm, case, OPENCL, opencl.run, points=24) is None


def pruned_network(module: nn.Module | None = None) -> TorchNetwork:
    """Return a network, by default the small one, with four weights in five of its convolutions zero."""
    small, draw = network(module), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer in small.module.modules():
            if isinstance(layer, nn.Conv2d) and layer.groups == 1:
                layer.weight[torch.rand(layer.weight.shape, generator=draw) < 0.8] = 0
    return small


def check_on_opencl(
    compiler: TvmCompiler, small: TorchNetwork, algorithm: SparseRows, folder: Path, opencl: Any
) -> list[Layer]:
    """Schedule a network for OpenCL and run it on the processors; return its layers."""
    x = images(2)
    scheduled = compiler.schedule(small, algorithm, OPENCL, 2, folder)
    answer = opencl.run(scheduled.module, [x, *scheduled.lowered.parameters.values()], OPENCL)
    assert error(answer, small.reference(x)) < 1e-5
    return scheduled.layers


@pytest.mark.slow
def test_hand_takes_the_best_guess(algorithm: SparseRows, tmp_path: Path, opencl: Any) -> None:
    layers = check_on_opencl(Hand(), pruned_network(), algorithm, tmp_path, opencl)
    decided = [layer["decisions"] for layer in layers if "declined" in layer and not layer["declined"]]
    assert len(decided) == 5 and all(
        isinstance(point, dict) and point["threads"] >= gpu_threads.WARP for point in decided
    )


@dataclass(frozen=True)
class Device(Local):
    """A GPU, played by this machine's processors."""

    def target(self) -> Target:
        """Return OpenCL's."""
        return OPENCL

    def prepare(self) -> None:
        """Leave the processors as they are."""


class OpenclRunner(LocalRunner):
    """Runs candidates by PyOpenCL."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.device = tvm.cpu()

    def compiled(self, function: Any) -> Any:
        from tests.fixtures import opencl

        return opencl.Device(tvm.IRModule({MAIN: function}), self.target)

    def entry(self, built: Any) -> Any:
        def call(*arguments: Any) -> None:
            *inputs, output = arguments
            given = [array.numpy() for array in inputs]
            output.copyfrom(built.call(MAIN, given, tuple(map(int, output.shape)), str(output.dtype)))

        return call

    def samples(self, built: Any, count: int) -> list[float]:
        return [self.time_call(built) for _ in range(count)]


class InThisProcess:
    """One worker in this process: OpenCL's threads do not survive a fork."""

    def __init__(self, count: int, start: Any, memory: int | None = None) -> None:
        self.handlers: Handlers = start()

    def call(self, worker: int, seconds: float, /, do: str, **message: Any) -> Reply:
        return self.handlers[do](**message)

    def map(self, messages: Sequence[Mapping[str, Any]], seconds: float) -> Iterator[tuple[int, int, Reply]]:
        for number, message in enumerate(messages):
            yield number, 0, self.call(0, seconds, **message)

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_metaschedule_searches_the_space_and_follows_its_choice(
    tmp_path: Path, opencl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurers, "LocalRunner", OpenclRunner)
    monkeypatch.setattr(measurers, "WorkerPool", InThisProcess)
    compiler, algorithm = MetaSchedule(trials=3, per_round=3), BsrDirect()
    where: Bench = bench(tmp_path, Device(parts.make("hardware", "local_cpu", {}).profile, 1))
    chain = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 10, 3), nn.AvgPool2d(7), nn.Flatten()
    )
    small = pruned_network(chain)
    told = compiler.tune(small, algorithm, 2, where, tmp_path)
    assert told["valid"] == told["trials"] == 6
    layers = [
        layer for layer in check_on_opencl(compiler, small, algorithm, tmp_path, opencl) if "space" in layer
    ]
    assert [layer["space"] for layer in layers] == ["algorithm"] * 2
    points = [layer["decisions"] for layer in layers]
    assert all(isinstance(point, dict) and point["threads"] for point in points)
