"""Linear layers with weights packed at compile time, so that they are streamed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import s_tir, te, tirx
from tvm.ir import Expr

from dlas.lowering.graph.graph import OPAQUE
from dlas.lowering.kernels.kernel import Kernel, KernelOrigin
from dlas.lowering.kernels.products.registers import COPIED, LINEAR, ROWS, compute_linear_in_registers
from dlas.lowering.kernels.products.tiles import copy_block, panel_width, row_tiles, whole_rows
from dlas.lowering.operators.blocks import is_costly
from dlas.lowering.operators.schedule import schedule_one
from dlas.networks.operator_names import of_topi
from dlas.schedules.loops.numbers import converted
from dlas.stack import Algorithm, Array, Decisions, Layer, Target


def pack_linear(weight: Array, target: Target) -> Array:
    """Return a matrix [c, k] as panels [k / t, c, t] of neighbouring outputs, padded with zeros."""
    c, k = weight.shape
    t = panel_width(k, target)
    whole = np.pad(weight.T, ((0, -k % t), (0, 0)))  # networks store the transpose
    return np.ascontiguousarray(whole.reshape(-1, t, c).transpose(0, 2, 1))


def linear(
    x: te.Tensor, panels: te.Tensor, outputs: int, target: Target, accumulator: str = "float32"
) -> te.Tensor:
    """Return the rows [m, k] of ``x`` [m, c] times the matrix in ``panels`` [k / t, c, t], in TE.

    Stage ``copied`` [c / u, m, u] repeats the last row until tiles divide all rows.
    """
    rows, terms = (int(extent) for extent in x.shape)
    count, _, t = (int(extent) for extent in panels.shape)
    whole, u = whole_rows(rows, t, target), copy_block(terms)
    c = te.reduce_axis((0, terms), "c")

    def row(block: Expr, m: Expr, term: Expr) -> Expr:
        return x[m if whole == rows else tirx.min(m, rows - 1), block * u + term]

    def element(panel: Expr, m: Expr, lane: Expr) -> Expr:
        value, weight = copied[c // u, m, c % u], panels[panel, c, lane]
        return te.sum(converted(value, accumulator) * converted(weight, accumulator), axis=c)

    copied = te.compute((terms // u, whole, u), row, name=COPIED)
    summed = te.compute((count, whole, t), element, name=LINEAR)
    return te.compute((rows, outputs), lambda m, k: summed[k // t, m, k % t], name=ROWS)


@dataclass(frozen=True)
class LinearKernel(Kernel):
    """A linear layer with the elementwise operators that TVM fused behind it.

    Layers of one shape and one tail share a kernel: weights are arguments.
    """

    name: str
    """Of the PrimFunc."""
    function: tirx.PrimFunc
    """With the stages of :func:`linear`, and others behind them."""
    rows: int
    """Rows of the input."""

    @classmethod
    def read(cls, name: str, function: tirx.PrimFunc) -> LinearKernel | None:
        """Return a PrimFunc as the kernel of a linear layer; None if it computes something else."""
        blocks = stages(function)
        if [block.name_hint for block in blocks[:3]] != [COPIED, LINEAR, ROWS]:
            return None
        written = [[int(axis.dom.extent) for axis in block.iter_vars] for block in blocks[2:]]
        if any(shape != written[0] for shape in written) or sum(map(is_costly, blocks)) > 1:
            return None
        return cls(name, function.with_attr("op_pattern", OPAQUE), written[0][0])

    @property
    def layer(self) -> str:
        """Its shape: rows, inputs and outputs."""
        return f"linear {self.rows}x{self._terms}x{self._outputs}"

    @property
    def tolerance(self) -> float:
        """That of a convolution."""
        return Algorithm.tolerance

    @property
    def origin(self) -> KernelOrigin:
        """Linear layers have no options."""
        return KernelOrigin({"name": "linear", "class": type(self).__qualname__, "options": {}}, type(self))

    def describe(self) -> Layer:
        """Return the kernel as a layer of a row."""
        behind = self._stages[3:]
        # A bias is one row; what is added element by element is another operator.
        adds = bool(behind) and _operator(behind[0].name_hint) == "Add"
        bias = adds and any(len(region.region) == 1 for region in behind[0].reads)
        return {
            "name": self.layer,
            "operator": "Gemm",
            "fused": [_operator(block.name_hint) for block in behind[bias:]],
            "bias": bias,
            "n": self.rows,
            "c": self._terms,
            "k": self._outputs,
            "macs": self.rows * self._terms * self._outputs,
            "kernel": self.name,
        }

    def space(self, target: Target) -> Sequence[Decisions]:
        """Return the register tiles; none for a GPU."""
        if not target.on_processors:
            return ()
        panels, whole, width, terms = (int(axis.dom.extent) for axis in self._stages[1].iter_vars)
        return row_tiles(whole, terms, panels, width, target)

    def apply(self, schedule: s_tir.Schedule, target: Target, decisions: Decisions) -> None:
        """Compute a register tile at a time, as one point of the space says."""
        compute_linear_in_registers(schedule, decisions)

    def minimal(self, target: Target) -> tirx.PrimFunc:
        """Return the schedule that all operators without a space of their own have."""
        return schedule_one(self.function, target)

    @property
    def _stages(self) -> list[s_tir.SBlock]:
        return stages(self.function)

    @property
    def _terms(self) -> int:
        return int(self._stages[1].iter_vars[3].dom.extent)

    @property
    def _outputs(self) -> int:
        return int(self._stages[2].iter_vars[-1].dom.extent)


def linear_kernels(module: tvm.IRModule) -> dict[str, LinearKernel]:
    """Return the kernels of linear layers in a module whose operators are fused, by name."""
    found = (
        LinearKernel.read(variable.name_hint, function)
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    )
    return {kernel.name: kernel for kernel in found if kernel is not None}


def _operator(stage: str) -> str:
    """Return the operator of a stage: TVM names it so, the second one with a number, ``T_add_1``."""
    name = stage.removeprefix("T_").rstrip("0123456789").rstrip("_")
    return of_topi(name) or name


def stages(function: tirx.PrimFunc) -> list[s_tir.SBlock]:
    """Return the blocks of a PrimFunc's stages in order, none where its body is no sequence of loop nests."""
    schedule = s_tir.Schedule(function)
    return [schedule.get(block) for block in schedule.get_child_blocks(schedule.get_sblock("root"))]
