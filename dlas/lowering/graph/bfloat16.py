"""Operators of Relax between float32 and bfloat16, whose numbers are tensors of ``uint16``.

Relax has a type bfloat16, which TVM's passes turn to float32 in the middle of a kernel.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from dlas.stack import BFLOAT16_BITS

NARROW, WIDEN = "relax.to_bfloat16", "relax.from_bfloat16"


def to_bfloat16(value: relax.Expr) -> relax.Call:
    """Return a float32 tensor rounded to bfloat16."""
    return relax.Call(tvm.ir.Op.get(NARROW), [value])


def from_bfloat16(bits: relax.Expr) -> relax.Call:
    """Return a tensor of bfloat16 in float32."""
    return relax.Call(tvm.ir.Op.get(WIDEN), [bits])


def _register(operator: str, dtype: str) -> None:
    """Tell TVM of an operator that computes every element by itself, and its result's type."""

    def infer(call: relax.Call, _builder: Any) -> relax.TensorType:
        return relax.TensorType(call.args[0].ty.shape, dtype)

    tvm.ir.register_op_attr(operator, "FInferType", infer)
    tvm.ir.register_op_attr(operator, "FPurity", True)


_register(NARROW, BFLOAT16_BITS)
_register(WIDEN, "float32")
