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
from tvm import relax, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.lowering.graph.graph import Graph
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.lower import lower_graph, schedule
from dlas.lowering.target import tvm_target
from dlas.schedules.direct import Direct
from dlas.stack import CHANGE_LAYOUT, Algorithm, Conv, Decisions, Tail, Target
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST, check_case, run_here
from dlas.testing.cases import Case

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


# ---------------------------------------------------------------- unsigned by signed bytes, requantised

BYTES = Conv("bytes", 2, 6, 9, 8, 10, 3, 3, strides=(2, 1), padding=(1, 0, 2, 1), groups=2)
READ_ZERO, WRITTEN_ZERO = 117, 9
"""The zero points of input and output."""


def quantised(draw: np.random.Generator) -> dict[str, Array]:
    """Return input, weight, bias and scale of each filter; every other filter's results are whole halves."""
    weight = draw.integers(-128, 128, (BYTES.k, BYTES.c // BYTES.groups, 3, 3), np.int8)
    bias = draw.integers(-30_000, 30_000, BYTES.k, np.int32)
    scale = draw.uniform(2e-3, 6e-3, BYTES.k).astype(np.float32)
    weight[::2], bias[::2], scale[::2] = weight[::2] // 32 * 32, bias[::2] // 32 * 32, 1 / 64
    return {
        "x": draw.integers(0, 256, BYTES.input_shape, np.uint8),
        "weight": weight,
        "bias": bias,
        "scale": scale,
    }


def quantised_network(given: dict[str, Array]) -> Graph:
    """Return the layer as Relax writes it: the border apart, requantisation as operators behind it.

    The zero point of the input is taken off by the bias, as ONNX Runtime does.
    That of the output is added after rounding: a sum of a product before it
    may be one instruction, which rounds once.
    """
    images = relax.Var("images", relax.TensorType(BYTES.input_shape, "uint8"))
    top, left, bottom, right = BYTES.padding
    taken_off = READ_ZERO * given["weight"].astype(np.int32).sum((1, 2, 3), dtype=np.int32)
    bias, scale = ((given["bias"] - taken_off).reshape(-1, 1, 1), given["scale"].reshape(-1, 1, 1))
    options = {"strides": BYTES.strides, "groups": BYTES.groups, "out_dtype": "int32"}
    builder, op = relax.BlockBuilder(), relax.op
    with builder.function("main", [images]):
        widths = [0, 0, 0, 0, top, bottom, left, right]
        x = builder.emit(op.nn.pad(images, widths, pad_value=READ_ZERO))
        y = convolved = builder.emit(op.nn.conv2d(x, relax.const(given["weight"]), **options))
        y = builder.emit(op.add(y, relax.const(bias)))
        y = builder.emit(op.multiply(builder.emit(op.astype(y, "float32")), relax.const(scale)))
        y = builder.emit(op.add(builder.emit(op.round(y)), relax.const(np.float32(WRITTEN_ZERO))))
        y = builder.emit(op.astype(builder.emit(op.clip(y, 0, 255)), "uint8"))
        builder.emit_func_output(y)
    blocks = builder.get()["main"].body.blocks
    bindings = [(binding.var, binding.value) for block in blocks for binding in block.bindings]
    return Graph(images, bindings, y, {convolved: BYTES.name})


def quantised_expectation(given: dict[str, Array]) -> tuple[Array, Array]:
    """Return the output, and what it was before it was rounded; integers are exact in float64."""
    x = torch.from_numpy(given["x"]).double() - READ_ZERO
    top, left, bottom, right = BYTES.padding
    padded, weight = functional.pad(x, (left, right, top, bottom)), torch.from_numpy(given["weight"]).double()
    exact = functional.conv2d(padded, weight, None, BYTES.strides, 0, 1, BYTES.groups).numpy()
    total = exact + given["bias"][:, None, None]
    scaled = total.astype(np.float32) * given["scale"][:, None, None]
    return np.clip(np.rint(scaled) + WRITTEN_ZERO, 0, 255).astype(np.uint8), scaled


@pytest.mark.parametrize("name", parts.names("algorithm"))
def test_a_layer_of_bytes_is_one_kernel_and_equal_bit_for_bit(name: str) -> None:
    given = quantised(np.random.default_rng(0))
    expected, unrounded = quantised_expectation(given)
    rounded_up = np.clip(np.floor(unrounded + 0.5) + WRITTEN_ZERO, 0, 255)
    assert np.any(rounded_up != expected), "how halves are rounded is not seen"
    assert {0, 255} <= set(expected.flat) and len(set(expected.flat)) > 100, "nor where values end"
    lowered = lower_graph(quantised_network(given), parts.make("algorithm", name, {}))
    functions = {v.name_hint for v, f in lowered.module.functions_items() if isinstance(f, tirx.PrimFunc)}
    others = functions - set(lowered.kernels)
    assert len(lowered.kernels) == 1 and all(function.startswith(CHANGE_LAYOUT) for function in others)
    (layer,) = lowered.layers
    assert (layer["padding"], layer["padding_value"]) == (BYTES.padding, READ_ZERO)
    assert tuple(layer["types"].values()) == ("uint8", "int8", "int32", "uint8")
    assert layer["bias"] and layer["fused"] == ["Cast", "Mul", "Round", "Add", "Clip", "Cast"]
    for module in (lowered.module, schedule(lowered, HOST)):
        actual = run_here(module, [given["x"], *lowered.parameters.values()])
        np.testing.assert_array_equal(actual, expected)


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


def run(function: Any, kernel: ConvolutionKernel, x: Array) -> Array:
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
