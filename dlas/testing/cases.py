"""Convolutions that every algorithm must compute or decline, and PyTorch's results for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from tvm import relax

from dlas.lowering.graph.graph import Graph
from dlas.stack import Array, Conv

ACTIVATIONS: dict[str, tuple[Callable[[relax.Expr], relax.Expr], Callable[[torch.Tensor], torch.Tensor]]] = {
    "relu": (relax.op.nn.relu, functional.relu),
    "relu6": (lambda x: relax.op.clip(x, 0.0, 6.0), functional.relu6),
    "sigmoid": (relax.op.sigmoid, torch.sigmoid),
    "silu": (relax.op.nn.silu, functional.silu),
}
"""Activations in Relax and in torch."""


@dataclass(frozen=True)
class Case:
    """One convolution that an algorithm must compute or decline."""

    conv: Conv
    """``conv.name`` describes its special property."""
    bias: bool = False
    residual: bool = False
    """Whether they are added in the same kernel."""
    activation: str | None = None
    """A key of ``ACTIVATIONS``, applied last, in the same kernel."""
    sparsity: float | None = 0.0
    """Share of zeros in the weight. Between 0 and 1, one filter is all zeros, and another has none if there
    are several. At 0 a single weight is zero, for algorithms that leave weights without zeros to others; with
    None there are no zeros.
    """
    weight: Array | None = field(default=None, compare=False)
    """The weight itself [k, c / groups, r, s], instead of a random one."""


def _conv(name: str, read: tuple[int, int, int, int], k: int, kernel: tuple[int, int], **rest: Any) -> Conv:
    """Return a convolution that reads images of a shape [n, c, h, w]."""
    return Conv(name, *read, k, *kernel, **rest)


SAME = (1, 1, 1, 1)
CASES: tuple[Case, ...] = (
    Case(_conv("plain", (1, 8, 10, 12), 16, (3, 3))),
    Case(_conv("padded", (1, 16, 14, 14), 16, (3, 3), padding=SAME)),
    Case(_conv("stride 2", (1, 8, 15, 16), 16, (3, 3), strides=(2, 2), padding=SAME)),
    Case(_conv("strides 1 and 3", (1, 4, 9, 13), 8, (3, 3), strides=(1, 3), padding=SAME)),
    Case(_conv("asymmetric padding", (1, 4, 9, 9), 8, (3, 3), padding=(0, 1, 2, 3))),
    Case(_conv("a border of 1.5", (1, 16, 9, 9), 16, (3, 3), padding=SAME, padding_value=1.5), True, True),
    Case(_conv("dilation", (1, 8, 13, 13), 8, (3, 3), padding=(2, 2, 2, 2), dilation=(2, 2))),
    Case(_conv("dilations 1 and 3", (1, 4, 9, 15), 8, (3, 3), dilation=(1, 3))),
    Case(_conv("groups", (1, 12, 8, 8), 24, (3, 3), padding=SAME, groups=3)),
    Case(_conv("depthwise", (1, 16, 12, 12), 16, (3, 3), padding=SAME, groups=16)),
    Case(_conv("depthwise, two filters a channel", (1, 6, 8, 8), 12, (3, 3), padding=SAME, groups=6)),
    Case(_conv("depthwise, eight filters a channel", (1, 3, 8, 8), 24, (3, 3), padding=SAME, groups=3)),
    Case(
        _conv(
            "depthwise, stride 2",
            (1, 16, 13, 13),
            16,
            (5, 5),
            strides=(2, 2),
            padding=(2, 2, 2, 2),
            groups=16,
        )
    ),
    Case(_conv("1x1", (1, 32, 7, 7), 16, (1, 1))),
    Case(_conv("1x1, stride 2", (1, 16, 8, 8), 32, (1, 1), strides=(2, 2))),
    Case(
        _conv(
            "7x7, stride 2, three channels", (1, 3, 32, 32), 16, (7, 7), strides=(2, 2), padding=(3, 3, 3, 3)
        )
    ),
    Case(_conv("1x5 kernel", (1, 4, 6, 11), 8, (1, 5), padding=(0, 2, 0, 2))),
    Case(_conv("odd sizes", (1, 5, 11, 7), 13, (3, 3), padding=SAME)),
    Case(_conv("filters that make no whole vectors", (1, 9, 8, 16), 51, (1, 1)), bias=True),
    Case(_conv("one output point", (1, 16, 3, 3), 10, (3, 3))),
    Case(_conv("one of everything", (1, 1, 1, 1), 1, (1, 1)), bias=True, activation="relu"),
    Case(_conv("depthwise 1x1", (1, 8, 5, 5), 8, (1, 1), groups=8), bias=True),
    Case(_conv("one channel, one filter", (1, 1, 5, 5), 1, (3, 3), padding=SAME)),
    Case(_conv("whole blocks of GPU threads", (1, 8, 10, 16), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("batch 3", (3, 8, 9, 9), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("bias", (1, 8, 8, 8), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("bias and relu", (1, 8, 8, 8), 16, (3, 3), padding=SAME), bias=True, activation="relu"),
    Case(_conv("silu", (1, 8, 8, 8), 16, (1, 1)), bias=True, activation="silu"),
    Case(_conv("depthwise and relu6", (2, 8, 9, 9), 8, (3, 3), padding=SAME, groups=8), True, False, "relu6"),
    Case(_conv("bias, residual, relu", (1, 16, 7, 7), 16, (3, 3), padding=SAME), True, True, "relu"),
    Case(_conv("residual, batch 2", (2, 8, 6, 6), 8, (1, 1)), True, True, "sigmoid"),
    Case(_conv("half zeros", (1, 8, 9, 7), 10, (3, 3), strides=(1, 2), padding=SAME), True, sparsity=0.5),
    Case(_conv("mostly zeros", (1, 16, 8, 8), 16, (3, 3), padding=SAME), True, True, "relu", sparsity=0.9),
    Case(_conv("hardly anything but zeros", (2, 24, 6, 6), 8, (1, 1), groups=2), True, sparsity=0.99),
    Case(_conv("nothing but zeros", (1, 4, 6, 6), 8, (3, 3), padding=SAME), True, sparsity=1.0),
)
"""The convolutions that every algorithm is checked with."""


def tensors(case: Case, seed: int) -> dict[str, Array]:
    """Return random input, weight, bias and residual of a case."""
    conv, draw = case.conv, np.random.default_rng(seed)
    shapes = {
        "x": (conv.n, conv.c, conv.h, conv.w),
        "weight": (conv.k, conv.c // conv.groups, conv.r, conv.s),
        "bias": (conv.k,),
        "residual": (conv.n, conv.k, conv.p, conv.q),
    }
    arrays = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if case.sparsity:
        zeros = draw.random(shapes["weight"]) < case.sparsity
        zeros[0] = case.sparsity == 1
        zeros[conv.k // 2] = True
        arrays["weight"][zeros] = 0
    elif case.sparsity is not None and arrays["weight"].size > 1:
        arrays["weight"].flat[-1] = 0
    if case.weight is not None:
        arrays["weight"] = case.weight
    return arrays


def expected(case: Case, tensors: dict[str, Array]) -> Array:
    """Return PyTorch's result, computed in float64."""
    conv = case.conv
    values = {name: torch.from_numpy(array).double() for name, array in tensors.items()}
    top, left, bottom, right = conv.padding
    x = functional.pad(values["x"], (left, right, top, bottom), value=conv.padding_value)
    y = functional.conv2d(x, values["weight"], None, conv.strides, 0, conv.dilation, conv.groups)
    if case.bias:
        y = y + values["bias"][:, None, None]
    if case.residual:
        y = y + values["residual"]
    if case.activation:
        y = ACTIVATIONS[case.activation][1](y)
    return y.numpy()


def graph(case: Case, tensors: dict[str, Array]) -> Graph:
    """Return the case as a network."""
    conv = case.conv
    images = relax.Var("images", relax.TensorType(tensors["x"].shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [images]):
        x, padding = images, conv.padding
        if conv.padding_value:  # a convolution of Relax pads with zeros
            (top, left, bottom, right), padding = conv.padding, (0, 0, 0, 0)
            widths = [0, 0, 0, 0, top, bottom, left, right]
            x = builder.emit(relax.op.nn.pad(images, widths, pad_value=conv.padding_value))
        y = convolved = builder.emit(
            relax.op.nn.conv2d(
                x,
                relax.const(tensors["weight"]),
                strides=conv.strides,
                padding=padding,
                dilation=conv.dilation,
                groups=conv.groups,
                out_dtype=conv.accumulator_type,
            )
        )
        if case.bias:
            y = builder.emit(relax.op.add(y, relax.const(tensors["bias"].reshape(-1, 1, 1))))
        if case.residual:
            y = builder.emit(relax.op.add(y, relax.const(tensors["residual"])))
        if case.activation:
            y = builder.emit(ACTIVATIONS[case.activation][0](y))
        builder.emit_func_output(y)
    blocks = builder.get()["main"].body.blocks
    bindings = [(binding.var, binding.value) for block in blocks for binding in block.bindings]
    return Graph(images, bindings, y, {convolved: conv.name})
