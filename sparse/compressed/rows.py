"""Sparse convolution by rows: each nonzero updates a run of outputs accumulated in registers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from tvm import te, tirx
from tvm.ir.transform import Pass
from tvm.s_tir import Schedule
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from dlas.schedules.loops.dot_forms import ByDotProducts, form_by
from dlas.schedules.loops.dot_products import FOURS, DotProducts, dot_products
from dlas.schedules.loops.filter_tiles import element_bytes
from dlas.schedules.loops.transformations import only_nchw, parallelise
from dlas.schedules.loops.vectors import VectorUnit, divisors, vector_unit
from dlas.schedules.spatial_pack import SpatialPack
from dlas.sparse.compressed.bands import compute_bands, reduction_loops
from dlas.sparse.compressed.blocks import argument
from dlas.sparse.compressed.csr import Csr, balanced_order
from dlas.sparse.compressed.dots import by_entries, entry_by_entry, write_dot_products
from dlas.sparse.compressed.gpu import compute_on_threads, give_outputs_threads
from dlas.sparse.compressed.gpu_padding import pad_by_threads
from dlas.sparse.compressed.guards import end_loops_early
from dlas.sparse.compressed.kernel import finish_outputs, sum_products
from dlas.sparse.compressed.padding import parallelise_padding, write_planes
from dlas.sparse.compressed.planes import Planes
from dlas.sparse.compressed.thread_tiles import thread_tiles
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target, stored_type

MOST = VectorUnit(lanes=16, registers=32)
"""The largest vector unit: weights are packed before the target is known."""
LEAST_ENTRIES = 12
"""Fewest entries of a row in a block of channels: each block adds its sums to those before it."""
CACHED_BYTES = 24_000
"""Largest size of a band's inputs from a block of channels that stays in a first-level cache."""
SHARES_A_THREAD = 4
"""Most tasks a thread among which the filters are divided."""
PUT_IN_ORDER = 4
"""Registers for the inputs of several entries, and for the order that they are put in."""


class SparseRows(Algorithm):
    """What CSR and BSR convolutions have in common.

    A row is ``height`` filters; an entry is their weights in one column, stored unless all
    are zero.  Columns become offsets from an output to its input when the network is
    compiled.  Rows are ordered so that threads have equal shares of the entries, and
    channels are cut into blocks whose inputs stay in a cache; outputs are written back
    in the original order.  Layers without zeros, such as the first, are computed by
    ``spatial_pack``: changes of layout around them cost less than it saves.
    """

    inputs: ClassVar[type[Planes]] = Planes
    """Where the inputs of outputs lie."""

    @property
    def height(self) -> int:
        """Filters of a row: 1 for CSR, the block size for BSR."""
        return 1

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: depthwise ones are, and layouts other than NCHW."""
        if conv.depthwise:
            return f"each filter of a depthwise convolution has only {conv.r}x{conv.s} weights to leave out"
        return only_nchw(conv)

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form that adds products of bytes four at a time, where the target has VNNI."""
        dots = dot_products(conv, target)
        return _of_bytes(type(self), dots)(**vars(self)) if dots is FOURS else self

    def for_weight(self, weight: Array, conv: Conv) -> Algorithm:
        """Return blocked spatial pack for a weight without zeros, which pruning left as it was."""
        return self if np.count_nonzero(weight) < weight.size else SpatialPack(layout="blocked")

    def planes(self, conv: Conv) -> Planes:
        """Return where the inputs of a convolution lie."""
        return self.inputs(conv, vectors_a_tile(MOST, self.height))

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return values [entries, height], offsets [entries], starts of rows, and the filters of all rows.

        Each block of channels has every row.  Filters that pad a row have the index ``conv.k``.
        TVM has no empty arrays: a weight of zeros has one entry, outside of all rows.
        """
        planes, rows = self.planes(conv), self._rows(weight, conv)
        lengths = rows.any(axis=2).sum(axis=1)
        order = balanced_order(lengths)
        channels = channels_a_block(planes, float(lengths.mean()))
        csr = Csr.of(_by_blocks(rows[order], channels * conv.r * conv.s))
        number, row = np.divmod(csr.row_of_each, len(rows))
        group = order[row] * conv.groups // len(rows)
        columns = group * rows.shape[1] + number * csr.width + csr.columns
        spare = 0 if len(columns) else 1
        offsets = np.pad(planes.offsets().ravel()[columns], (0, spare))
        return np.pad(csr.values, ((0, spare), (0, 0))), offsets, csr.starts, self._filters(conv)[order]

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] with its zeros."""
        values, offsets, starts, filters = packed
        all_offsets = self.planes(conv).offsets().ravel()
        ascending = np.argsort(all_offsets)
        columns = ascending[np.searchsorted(all_offsets, offsets[: starts[-1]], sorter=ascending)]
        row = np.repeat(np.arange(len(starts) - 1) % len(filters), np.diff(starts))
        matrix = np.zeros((conv.k + 1, len(all_offsets) // conv.groups), values.dtype)
        matrix[filters[row], columns[:, None] % matrix.shape[1]] = values[: starts[-1]]
        return matrix[:-1].reshape(conv.k, -1, conv.r, conv.s)

    def _filters(self, conv: Conv) -> npt.NDArray[np.int32]:
        """Return the filters of each row [rows, height]: no row has filters of several groups."""
        filters = np.arange(conv.k, dtype=np.int32).reshape(conv.groups, -1)
        filled = np.pad(filters, ((0, 0), (0, -filters.shape[1] % self.height)), constant_values=conv.k)
        return filled.reshape(-1, self.height)

    def _rows(self, weight: Array, conv: Conv) -> Array:
        """Return the weight as rows [rows, c / groups r s, height]."""
        matrix = weight.reshape(conv.k, -1)
        nothing = np.zeros_like(matrix[:1])
        return np.concatenate([matrix, nothing])[self._filters(conv)].transpose(0, 2, 1)

    def arguments(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return what :meth:`pack` does: random row starts would read out of bounds."""
        return self.pack(weight, conv)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the pass that bounds loops over entries, and on a GPU the one that pads by threads."""
        return (end_loops_early, pad_by_threads(self.planes(conv))) if target.on_gpu else (end_loops_early,)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> tirx.PrimFunc:
        """Return the function of (x, values, offsets, starts, filters, *tail.operands, output)."""
        planes = self.planes(conv)
        with IRBuilder() as builder, T.prim_func(s_tir=True):
            T.func_name("sparse")
            T.func_attr({"tirx.noalias": True})
            given, *arrays = map(argument, (x, *packed, *tail.operands))
            output = T.arg("output", T.Buffer(conv.output_shape, stored_type(conv.output_type)))
            *format_, filters = arrays[: len(packed)]
            sums = sum_products(planes, write_planes(planes, given), format_, filters.shape)
            finish_outputs(planes, sums, filters, output, tail, arrays[len(packed) :])
        return builder.get()

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads padding, then the sums, then the tail."""
        if target.on_gpu:
            give_outputs_threads(schedule)
            return
        output, sums, products = (schedule.get_sblock(name) for name in ("output", "conv", "products"))
        schedule.compute_at(products, schedule.get_loops(sums)[-1], preserve_unit_loops=True)
        parallelise(schedule, output, 3)
        parallelise(schedule, sums, 3)
        for block in (sums, products):
            schedule.decompose_reduction(block, reduction_loops(schedule, block)[0])
        parallelise_padding(schedule)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return tiles of outputs that fit in the registers of a vector unit or of a GPU's threads."""
        if target.on_gpu:
            planes, filters = self.planes(conv), self._filters(conv)
            of_a_band = (planes.band.rows, planes.band.columns)
            return thread_tiles((conv.n, planes.bands, *filters.shape, *of_a_band), target)
        return self._tiles(conv, target)

    def _most_vectors(self, unit: VectorUnit) -> int:
        """Return how many vectors of outputs fit in the registers."""
        return vectors_a_tile(unit, self.height)

    def _tiles(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        planes, unit, rows = self.planes(conv), vector_unit(target), len(self._filters(conv))
        vectors = divisors(planes.band.places // unit.lanes, self._most_vectors(unit))[::-1]
        # More accumulators save a few loads, and cost as much where rows are short.
        vectors.sort(key=lambda tile: abs(tile * self.height - unit.registers // 2))

        def idle(share: int) -> float:
            """Relative time of all threads until the last one ends."""
            tasks = conv.n * planes.bands * (rows // share)
            return round(-(-tasks // target.threads) * target.threads / tasks, 1)

        shares = [share for share in divisors(rows, rows) if share * SHARES_A_THREAD * target.threads >= rows]
        shares.sort(key=lambda share: (idle(share), -share))
        return [{"vectors": v, "rows": share} for v in vectors[:4] for share in shares]

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Accumulate tiles of outputs in registers, entry by entry, and apply the tail a band at a time."""
        if target.on_gpu:
            compute_on_threads(schedule, decisions)
        else:
            compute_bands(schedule, vector_unit(target).lanes, decisions)


class SparseBytes(ByDotProducts, SparseRows):
    """Rows of bytes: an instruction adds the products of several entries to each sum.

    A row has whole groups of entries, the last one filled with zeros.
    """

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return values [groups, height, terms], offsets [groups, terms], starts and filters of all rows."""
        values, offsets, starts, filters = super().pack(weight, conv)
        return *by_entries(values, offsets, starts, self.dots.terms), filters

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] with its zeros."""
        *together, filters = packed
        return super().unpack((*entry_by_entry(*together), filters), conv)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the passes that bound loops over entries, and that write dot products."""
        return end_loops_early, write_dot_products(self.dots)

    def _most_vectors(self, unit: VectorUnit) -> int:
        """Return how many vectors of outputs fit beside a group's weights and the inputs put in order."""
        return max((unit.registers - self.height - PUT_IN_ORDER) // self.height, 1)


@functools.cache
def _of_bytes(kind: type[SparseRows], dots: DotProducts) -> type[SparseBytes]:
    """Return the form for bytes of an algorithm: a class derived from it."""
    return form_by(dots, SparseBytes, kind)


def vectors_a_tile(unit: VectorUnit, height: int) -> int:
    """Return how many vectors of outputs fit in the registers for rows of ``height`` filters.

    Registers hold the accumulators, a value, and the input unless a single filter reads it
    from memory.
    """
    return max((unit.registers - 2) // (height + (height > 1)), 1)


def channels_a_block(planes: Planes, entries: float) -> int:
    """Return how many channels of a group form a block, for a mean number of entries a row.

    Few enough that a band's inputs stay in a first-level cache, and enough that a row has
    several entries in each block.
    """
    channels = planes.conv.c // planes.conv.groups
    fit = CACHED_BYTES // (element_bytes(planes.conv.padded_type) * planes.under_a_band)
    enough = math.ceil(LEAST_ENTRIES * channels / max(entries, 1))
    blocks = -(-channels // min(max(fit, enough, 1), channels))
    return -(-channels // blocks)


def _by_blocks(rows: Array, width: int) -> Array:
    """Return rows [rows, columns, height] cut into blocks of columns, [blocks rows, width, height]."""
    count, columns, height = rows.shape
    padded = np.pad(rows, ((0, 0), (0, -columns % width), (0, 0)))
    return padded.reshape(count, -1, width, height).swapaxes(0, 1).reshape(-1, width, height)
