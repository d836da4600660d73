"""What every kernel of a lowered network computes, as rows describe it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from tvm import relax

from dlas.lowering.graph.graph import bindings_of, called_kernel
from dlas.lowering.kernels.fusing import FusedModule, FusedOperator
from dlas.lowering.kernels.kernel import Kernel
from dlas.lowering.kernels.layouts import REDUCTIONS, Layouts
from dlas.networks.layer_names import CallNames
from dlas.networks.operator_names import LAYOUT_CHANGE, of_reduction, of_relax, of_topi
from dlas.stack import CHANGE_LAYOUT, Layer

ADAPTIVE = "relax.nn.adaptive_avg_pool2d"
POOLS = ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
FREE = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that do nothing where they are fused with others."""


@dataclass
class KernelLayers:
    """Describes the calls of kernels in ``main``, in order."""

    kernels: Mapping[str, Kernel]
    """Those of convolutions and linear layers, which describe themselves."""
    layouts: Layouts
    """Of the values before fusing."""
    linear: Mapping[str, str]
    """The names of linear layers, by that of the parameter which is their weight."""
    stock: Mapping[relax.Var, Layer]
    """Convolutions that TVM's own operator computes."""
    _shapes: dict[relax.Expr, tuple[int, ...]] = field(default_factory=dict)

    def describe(self, fused: FusedModule) -> list[Layer]:
        """Return one layer for each kernel that ``main`` calls."""
        main, calls = fused.module["main"], CallNames()
        stored = set(main.params[1:])
        layers = []
        for variable, value in bindings_of(main):
            kernel = called_kernel(value)
            if kernel is not None:
                parts = fused.parts.get(kernel, ())
                read = [argument for argument in value.args[1].fields if isinstance(argument, relax.Var)]
                tensors = [argument for argument in read if argument not in stored]
                layer = self._layer(kernel, parts, [a.name for a in read if a in stored])
                self._shapes[variable] = self._shape(parts[-1].variable if parts else variable)
                layer["name"] = calls.next(layer["name"])
                layer["inputs"] = [list(self._shape(tensor)) for tensor in tensors]
                layer["output"] = list(self._shapes[variable])
                layers.append(layer)
        return layers

    def _layer(self, kernel: str, parts: Sequence[FusedOperator], stored: Sequence[str]) -> Layer:
        """Return what a kernel computes, but for the shapes that it reads and writes."""
        layer = next((self.linear[name] for name in stored if name in self.linear), kernel)
        if kernel in self.kernels:
            described = self.kernels[kernel].describe()
            return described if layer == kernel else {**described, "name": layer}
        names = [self._operator(part.value) for part in parts]
        known = [name for name in names if name is not None]
        if not known or len(known) < len(names):
            return {"name": layer, "operator": None, "kernel": kernel}
        main = _most_work(parts, known)
        fused = [name for index, name in enumerate(known) if index != main and name not in FREE]
        described = {"name": layer, "operator": known[main], "fused": fused, "kernel": kernel}
        return cast(
            Layer, {**described, **self._sizes(parts[main]), **self.stock.get(parts[main].variable, {})}
        )

    def _operator(self, value: relax.Expr) -> str | None:
        """Return the name of the operator that an expression calls, None where it is not known."""
        kernel = called_kernel(value)
        if kernel is not None:
            return _lowered_before(kernel)
        name = of_relax(value.op.name)
        if value.op.name in REDUCTIONS:
            axes = [int(axis) for axis in value.attrs.axis or ()]
            return of_reduction(name, axes, len(self._shape(value.args[0])), bool(value.attrs.keepdims))
        whole = value.op.name == ADAPTIVE and tuple(map(int, value.attrs.output_size)) == (1, 1)
        return "GlobalAveragePool" if whole else name

    def _sizes(self, part: FusedOperator) -> dict[str, Any]:
        """Return an operator's sizes and parameters."""
        call, operator, written = part.value, self._operator(part.value), self._shape(part.variable)
        if operator == LAYOUT_CHANGE:
            read = call.args[1].fields[0]
            return {"input_layout": self.layouts.of(read), "output_layout": self.layouts.of(part.variable)}
        if operator == "Gemm":
            (rows, terms), outputs = self._shape(call.args[1].fields[0]), written[-1]
            return {"n": rows, "c": terms, "k": outputs, "macs": rows * terms * outputs}
        if operator == "MatMul":
            return {"macs": math.prod(written) * self._shape(call.args[0])[-1]}
        if operator == "Concat":
            return {"axis": int(call.attrs.axis) % len(written)}
        return self._pool(call, written) if operator in POOLS and len(written) == 4 else {}

    def _pool(self, call: relax.Call, written: Sequence[int]) -> dict[str, Any]:
        """Return the sizes of pooling over h and w; a whole plane, or a share of it, is a window too."""
        n, c, h, w = self._shape(call.args[0])
        p, q = written[2:]
        sizes = {**dict(zip("nchw", (n, c, h, w), strict=True)), "p": p, "q": q}
        if hasattr(call.attrs, "pool_size"):
            a = call.attrs
            r, s = (int(side) for side in a.pool_size)
            listed = {
                name: [int(value) for value in values]
                for name, values in (("strides", a.strides), ("padding", a.padding), ("dilation", a.dilation))
            }
            return {**sizes, "r": r, "s": s, **listed, "ceil_mode": bool(a.ceil_mode)}
        if h % p or w % q:
            return sizes
        window = {"r": h // p, "s": w // q, "strides": [h // p, w // q]}
        return {**sizes, **window, "padding": [0, 0, 0, 0], "dilation": [1, 1]}

    def _shape(self, value: relax.Expr) -> tuple[int, ...]:
        """Return a value's shape, in NCHW whatever its layout; of several tensors, the first one's."""
        if value in self._shapes:
            return self._shapes[value]
        if isinstance(value.ty, relax.TupleType):
            return tuple(int(extent) for extent in value.ty.fields[0].shape)
        return self.layouts.shape(value)


def _lowered_before(kernel: str) -> str | None:
    """Return the operator of a PrimFunc that is not legalised from one: by its name."""
    name = kernel.rstrip("0123456789").rstrip("_")
    if name.startswith(CHANGE_LAYOUT):
        return LAYOUT_CHANGE
    if name == "linear":
        return "Gemm"
    return of_topi(name)


def _most_work(parts: Sequence[FusedOperator], names: Sequence[str]) -> int:
    """Return the position of the operator with the most work: by TVM's patterns, the first one of equals."""
    ranks = [-1 if name in FREE else part.pattern for part, name in zip(parts, names, strict=True)]
    return ranks.index(max(ranks))
