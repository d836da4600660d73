"""Which convolution reads the output of which other: where layouts have to be converted if they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from tvm import relax

from dlas.lowering.graph.graph import is_call, is_constant, shape_of, variables
from dlas.lowering.kernels.layouts import follows
from dlas.stack import Edge

Shares = dict[str | None, float]
"""By convolution, its share of the channels of a value; by None, the share that is always in NCHW."""


@dataclass
class Edges:
    """The reads of a network, collected while it is walked from its images to its output.

    Operators between convolutions are taken to keep the layout of their inputs where they
    can; all others read NCHW, and the network's output is NCHW.
    """

    reads: list[Edge] = field(default_factory=list)
    """One a read."""
    _writers: dict[relax.Var, Shares] = field(default_factory=dict)
    _numbers: dict[relax.Var, int] = field(default_factory=dict)

    def wrote(self, variable: relax.Var, layer: str) -> None:
        """Record that a convolution, with its tail, writes a value."""
        self._writers[variable] = {layer: 1.0}

    def passed(self, variable: relax.Var, value: relax.Expr) -> None:
        """Record an operator between convolutions."""
        if follows(value):
            self._writers[variable] = self._shares(value)
            return
        if isinstance(value, relax.Tuple):  # read by the operators that read its fields
            return
        for argument in variables(value):
            self.read(argument, None)

    def read(self, value: relax.Expr, reader: str | None, port: Literal["input", "output"] = "input") -> None:
        """Record who reads a value, if its layouts differ in memory."""
        for tensor in _fields(value):
            if not _has_planes(tensor):
                continue
            size = math.prod(shape_of(tensor)) * np.dtype(str(tensor.ty.dtype)).itemsize
            number = self._numbers.setdefault(tensor, len(self._numbers))
            for writer, share in self._writers.get(tensor, {None: 1.0}).items():
                if writer is None and reader is None:
                    continue
                moved = round(share * size)
                self.reads.append(Edge(writer=writer, value=number, bytes=moved, reader=reader, port=port))

    def _shares(self, call: relax.Call) -> Shares:
        """Return the shares of convolutions in an operator's output; a concatenation adds them up."""
        fields = [tensor for argument in call.args for tensor in _fields(argument) if _has_planes(tensor)]
        joined = is_call(call, "relax.concat") and int(call.attrs.axis) == 1
        shares: Shares = {}
        for tensor in fields:
            part = shape_of(tensor)[1] / shape_of(call)[1] if joined else 1.0
            for layer, share in self._writers.get(tensor, {None: 1.0}).items():
                before = shares.get(layer, 0.0)
                shares[layer] = before + part * share if joined else max(before, share)
        return shares


def _fields(value: relax.Expr) -> list[relax.Expr]:
    return list(value.fields) if isinstance(value, relax.Tuple) else [value]


def _has_planes(value: relax.Expr) -> bool:
    """Whether a value computed at run time is [n, c, h, w] with several channels and several pixels."""
    if (
        is_constant(value)
        or not isinstance(getattr(value, "ty", None), relax.TensorType)
        or value.ty.ndim != 4
    ):
        return False
    _, c, h, w = shape_of(value)
    return c > 1 and h * w > 1
