"""Constant folding by numpy.

TVM's own ``FoldConstant`` compiles a kernel for every constant expression,
which takes tens of seconds on a deep network; numpy takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tvm
from tvm import relax

from dlas.lowering.graph.graph import as_array, as_constant, is_call, is_constant, shape_of
from dlas.stack import Array


def _permute(call: relax.Call, x: Array) -> Array:
    axes = call.attrs.axes
    return np.transpose(x, None if axes is None else [int(axis) for axis in axes])


def _typed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Wrap a numpy function so that its result keeps the type of its first argument."""
    return lambda call, *arrays: np.asarray(function(*arrays)).astype(arrays[0].dtype)


NUMPY: dict[str, Callable[..., Array]] = {
    "relax.permute_dims": _permute,
    "relax.reshape": lambda call, x, *_: x.reshape(shape_of(call)),
    "relax.expand_dims": lambda call, x: x.reshape(shape_of(call)),
    "relax.squeeze": lambda call, x: x.reshape(shape_of(call)),
    "relax.flatten": lambda call, x: x.reshape(shape_of(call)),
    "relax.broadcast_to": lambda call, x, *_: np.broadcast_to(x, shape_of(call)),
    "relax.astype": lambda call, x: x.astype(str(call.ty.dtype)),
    "relax.add": _typed(np.add),
    "relax.subtract": _typed(np.subtract),
    "relax.multiply": _typed(np.multiply),
    "relax.divide": _typed(np.divide),
    "relax.sqrt": _typed(np.sqrt),
    "relax.rsqrt": _typed(lambda x: 1 / np.sqrt(x)),
    "relax.exp": _typed(np.exp),
    "relax.negative": _typed(np.negative),
    "relax.isnan": lambda call, x: np.isnan(x),
    "relax.where": lambda call, condition, x, y: np.asarray(np.where(condition, x, y), x.dtype),
}
"""How numpy evaluates an operator on constants; other operators are not folded."""


def folded(call: relax.Call, arguments: Sequence[relax.Expr]) -> tvm.ir.GenericConst | None:
    """Return what ``call`` computes of ``arguments``, if numpy can; None where one is not constant."""
    if not (is_call(call) and call.op.name in NUMPY):
        return None
    arrays = [as_array(argument) for argument in arguments if is_constant(argument)]
    others = [a for a in arguments if not is_constant(a) and not isinstance(a, relax.ShapeExpr)]
    return as_constant(NUMPY[call.op.name](call, *arrays)) if arrays and not others else None
