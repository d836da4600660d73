"""Linear layers with weights packed at compile time, so that they are streamed once."""

from __future__ import annotations

import numpy as np
from tvm import relax, te
from tvm.ir import Expr

from dlas.lowering.simplify import is_call, is_constant, shape_of
from dlas.stack import Array

PANEL = 32
"""Outputs of a panel: whole vectors on any processor."""
FUSES_BEHIND = 4
"""TVM's operator pattern ``kOutEWiseFusable``: elementwise operators may be fused after it."""


def is_linear(call: relax.Expr) -> bool:
    """Whether a call multiplies rows [m, c] by a constant matrix [c, k]."""
    if not (is_call(call, "relax.matmul") and is_constant(call.args[1])):
        return False
    return len(shape_of(call.args[0])) == len(shape_of(call.args[1])) == 2


def pack_linear(weight: Array) -> Array:
    """Return a matrix [c, k] as panels [k / t, c, t] of neighbouring outputs, padded with zeros."""
    c, k = weight.shape
    t = PANEL if k > PANEL // 2 else PANEL // 2
    whole = np.pad(weight.T, ((0, -k % t), (0, 0)))  # networks store the transpose
    return np.ascontiguousarray(whole.reshape(-1, t, c).transpose(0, 2, 1))


def linear(x: te.Tensor, panels: te.Tensor, outputs: int) -> te.Tensor:
    """Return the rows [m, k] of ``x`` [m, c] times the matrix in ``panels`` [k / t, c, t], as TE tensors."""
    count, channels, t = panels.shape
    c = te.reduce_axis((0, channels), "c")

    def element(panel: Expr, m: Expr, lane: Expr) -> Expr:
        return te.sum(x[m, c] * panels[panel, c, lane], axis=c)

    summed = te.compute((count, x.shape[0], t), element, name="linear")
    return te.compute((x.shape[0], outputs), lambda m, k: summed[k // t, m, k % t], name="rows")
