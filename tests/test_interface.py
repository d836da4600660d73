"""What the interface of an algorithm has to carry, each as a small algorithm of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
import tvm
from torch.nn import functional
from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.convolution import Conv, Tail
from dlas.lowering.kernels import Kernel, make_kernel, schedule_kernel
from dlas.lowering.lower import tvm_target
from dlas.schedules.direct import Direct
from dlas.stack import Algorithm, Decisions, Target
from dlas.testing import HOST, Case, check_case

Array = npt.NDArray[Any]

# ---------------------------------------------------------------- sparse: a hand-written function, fused


@dataclass(frozen=True)
class Csr(Algorithm):
    """The weight as a matrix [k, c r s] in CSR, each filter's nonzeros alone: TE cannot say how many."""

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return values, columns and where each row starts, one entry at least: TVM has no empty arrays."""
        matrix = weight.reshape(conv.k, -1)
        rows, columns = np.nonzero(matrix)
        starts = np.searchsorted(rows, np.arange(conv.k + 1)).astype(np.int32)
        spare = [0] if not len(rows) else []
        values = np.append(matrix[rows, columns], spare).astype(matrix.dtype)
        return values, np.append(columns, spare).astype(np.int32), starts

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight with its zeros."""
        values, columns, starts = packed
        matrix = np.zeros((conv.k, conv.c // conv.groups * conv.r * conv.s), values.dtype)
        rows = np.repeat(np.arange(conv.k), np.diff(starts))
        matrix[rows, columns[: starts[-1]]] = values[: starts[-1]]
        return matrix.reshape(conv.k, -1, conv.r, conv.s)

    def compute(self, x: Any, packed: Sequence[Any], conv: Conv, tail: Tail) -> Any:
        """Return the function of (x, values, columns, starts, *tail.operands, output)."""
        with IRBuilder() as builder, T.prim_func(s_tir=True):
            T.func_name("csr")
            T.func_attr({"tirx.noalias": True})
            x, values, columns, starts, *operands = (
                T.arg(tensor.name, T.Buffer([int(extent) for extent in tensor.shape], str(tensor.dtype)))
                for tensor in (x, *packed, *tail.operands)
            )
            output = T.arg("output", T.Buffer(conv.output_shape, conv.output_type))
            with T.grid(conv.n, conv.k, conv.p, conv.q) as loops, T.sblock("conv"):
                n, k, p, q = (
                    T.axis.spatial(extent, loop)
                    for extent, loop in zip(conv.output_shape, loops, strict=True)
                )
                T.reads(*(whole(buffer) for buffer in (x, values, columns, starts, *operands)))
                T.writes(output[n, k, p, q])
                T.buffer_store(output, tirx.const(0, conv.output_type), (n, k, p, q))
                with T.serial(starts[k], starts[k + 1]) as j:
                    product = values[j] * pixel(x, columns[j], (n, k, p, q), conv)
                    T.buffer_store(output, output[n, k, p, q] + product, (n, k, p, q))
                finished = tail.scalar(output[n, k, p, q], (n, k, p, q), operands)
                T.buffer_store(output, finished, (n, k, p, q))
        return builder.get()

    def schedule(self, schedule: Any, conv: Conv, target: Target) -> None:
        """Share the filters among threads."""
        n, k, _, _ = schedule.get_loops(schedule.get_sblock("conv"))
        schedule.parallel(schedule.fuse(n, k))


def whole(buffer: Any) -> Any:
    return buffer[tuple(slice(0, extent) for extent in buffer.shape)]


def pixel(x: Any, column: Any, index: Sequence[Any], conv: Conv) -> Any:
    """Return the input that the weight in ``column`` of a filter meets at the output's ``index``."""
    n, k, p, q = index
    window = conv.r * conv.s
    c = k // (conv.k // conv.groups) * (conv.c // conv.groups) + column // window
    row = p * conv.strides[0] + column % window // conv.s * conv.dilation[0] - conv.padding[0]
    place = q * conv.strides[1] + column % conv.s * conv.dilation[1] - conv.padding[1]
    inside = tirx.all(row >= 0, row < conv.h, place >= 0, place < conv.w)
    return tirx.if_then_else(inside, x[n, c, row, place], tirx.const(conv.padding_value, conv.input_type))


SPARSE = Conv("sparse", 2, 6, 9, 8, 10, 3, 3, strides=(2, 1), padding=(1, 0, 2, 1), groups=2)


@pytest.mark.parametrize("sparsity", [0.0, 0.5, 0.9, 1.0])
def test_a_sparse_layer_is_one_kernel_with_bias_and_relu(sparsity: float) -> None:
    declined = check_case(Csr(), Case(SPARSE, bias=True, activation="relu", sparsity=sparsity))
    assert declined is None


def test_a_sparse_layer_takes_a_residual_and_a_costly_activation() -> None:
    assert check_case(Csr(), Case(SPARSE, True, True, "silu", sparsity=0.8)) is None


def test_a_sparse_layers_rows_are_shared_among_threads() -> None:
    weight = np.zeros((SPARSE.k, SPARSE.c // SPARSE.groups, SPARSE.r, SPARSE.s), np.float32)
    weight[0, 0, 0, 0] = 1
    kernel = make_kernel(Csr(), SPARSE, weight, "sparse")
    assert [array.shape for array in kernel.packed] == [(1,), (1,), (SPARSE.k + 1,)]
    script = schedule_kernel(kernel, HOST).script()
    assert f"in T.parallel({SPARSE.n * SPARSE.k})" in script


# ---------------------------------------------------------------- a design space of one's own


@dataclass(frozen=True)
class Tiled(Direct):
    """The sliding window with two decisions: filters computed together, and how."""

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return the points; a tile divides the filters."""
        tiles = [tile for tile in (8, 4, 2) if conv.k % tile == 0]
        return [{"filters": tile, "together": how} for tile in tiles for how in ("vectorize", "unroll")]

    def apply(self, schedule: Any, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Bring a tile of filters to the inside."""
        n, k, p, q, *terms = schedule.get_loops(schedule.get_sblock("conv"))
        outer, inner = schedule.split(k, [None, decisions["filters"]])
        schedule.reorder(n, outer, p, q, *terms, inner)
        schedule.parallel(schedule.fuse(n, outer))
        getattr(schedule, str(decisions["together"]))(inner)


TILED = Conv("tiled", 1, 4, 7, 9, 12, 3, 3, padding=(1, 1, 1, 1))


def test_every_point_of_an_own_space_is_right_and_has_loops_of_its_own() -> None:
    draw = np.random.default_rng(0)
    weight = draw.standard_normal((TILED.k, TILED.c, TILED.r, TILED.s)).astype(np.float32)
    x = draw.standard_normal(TILED.input_shape).astype(np.float32)
    expected = functional.conv2d(torch.from_numpy(x), torch.from_numpy(weight), padding=1).numpy()
    kernel = make_kernel(Tiled(), TILED, weight, "tiled")
    points = kernel.algorithm.space(TILED, HOST)
    assert len(points) == 4, "8 does not divide 12"
    written = [schedule_kernel(kernel, HOST, decisions) for decisions in points]
    assert len({function.script() for function in (*written, schedule_kernel(kernel, HOST))}) == 5
    for function in written:
        np.testing.assert_allclose(run(function, kernel, x), expected, rtol=1e-4, atol=1e-5)


def run(function: Any, kernel: Kernel, x: Array) -> Array:
    """Return what a kernel without operands computes of ``x``."""
    built = tvm.tirx.build(function, target=tvm_target(HOST))[kernel.name]
    output = tvm.runtime.tensor(np.zeros(kernel.conv.output_shape, kernel.conv.output_type))
    built(*(tvm.runtime.tensor(array) for array in (x, *kernel.packed)), output)
    return np.asarray(output.numpy())


def test_an_algorithm_without_a_space_says_so() -> None:
    kernel = make_kernel(Csr(), TILED, np.ones((TILED.k, TILED.c, 3, 3), np.float32), "csr")
    assert kernel.algorithm.space(TILED, HOST) == ()
    with pytest.raises(NotImplementedError, match="Csr has no design space"):
        schedule_kernel(kernel, HOST, {"filters": 2})
