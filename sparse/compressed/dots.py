"""Dot products over the entries of a row: the inputs of several entries are put in order for one instruction.

An instruction adds the products of neighbouring bytes to each sum, but the inputs of a row's entries lie
apart.  So a vector of inputs is loaded for each of as many entries as it multiplies, and the vectors are
shuffled until the inputs of one output are neighbours; the filters of a block share the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Expr, TensorLoad
from tvm.ir.transform import Pass, PassContext
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import LoopRV

from dlas.schedules.loops.dot_intrinsics import interleaved, repeated
from dlas.schedules.loops.dot_products import DotProducts
from dlas.sparse.compressed.guards import bindings, substituted
from dlas.stack import Array
from dlas.stack.array import Int32Array

MARK = "dlas.entries_by_dot_products"
"""Annotation of a loop over lanes whose only content is a loop over the terms of a dot product."""


def by_entries(
    values: Array, offsets: Int32Array, starts: Int32Array, terms: int
) -> tuple[Array, Int32Array, Int32Array]:
    """Return compressed rows with ``terms`` entries together: what is missing in a row's last are zeros.

    Parameters
    ----------
    values : ndarray, [entries, height]
    offsets : ndarray of int32, [entries]
    starts : ndarray of int32, [rows + 1]

    Returns
    -------
    values : ndarray, [groups, height, terms]
    offsets : ndarray of int32, [groups, terms]
        A zero has the offset of its row's last entry, whose input has been loaded anyway.
    starts : ndarray of int32, [rows + 1]
        In groups of entries.
    """
    lengths = np.diff(starts)
    groups = -(-lengths // terms)
    row = np.repeat(np.arange(len(lengths)), groups * terms)
    ends = np.concatenate([[0], np.cumsum(groups)])
    place = np.arange(len(row)) - terms * ends[row]
    entry = starts[row] + np.minimum(place, lengths[row] - 1)
    kept = np.where((place < lengths[row])[:, None], values[entry], values.dtype.type(0))
    spare = 0 if len(row) else terms  # TVM has no empty arrays
    kept, read = np.pad(kept, ((0, spare), (0, 0))), np.pad(offsets[entry], (0, spare))
    together = kept.reshape(-1, terms, values.shape[1]).transpose(0, 2, 1)
    return together, read.reshape(-1, terms), ends.astype(np.int32)


def entry_by_entry(
    values: Array, offsets: Int32Array, starts: Int32Array
) -> tuple[Array, Int32Array, Int32Array]:
    """Return compressed rows without the zeros that :func:`by_entries` added."""
    groups, height, terms = values.shape
    apart = values.transpose(0, 2, 1).reshape(groups * terms, height)
    kept: Array = np.any(apart, axis=1)
    row = np.repeat(np.arange(len(starts) - 1), terms * np.diff(starts))
    lengths = np.bincount(row[kept[: len(row)]], minlength=len(starts) - 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return apart[kept], offsets.ravel()[kept], ends.astype(np.int32)


def mark_dot_products(schedule: Schedule, lane: LoopRV) -> None:
    """Note that a loop over lanes, with a loop over terms inside it, becomes one dot product."""
    schedule.annotate(lane, MARK, 1)


def write_dot_products(dots: DotProducts) -> Pass:
    """Return the pass that writes the loops which :func:`mark_dot_products` marked as instructions."""

    def written(loop: tirx.For) -> tirx.Stmt:
        return _at_once(loop, dots) if MARK in loop.annotations else loop

    @tirx.transform.prim_func_pass(opt_level=0)
    def replace(function: tirx.PrimFunc, module: tvm.IRModule, context: PassContext) -> tirx.PrimFunc:
        return function.with_body(tvm_ffi.structural_map(function.body, [(tirx.For, written)]))

    return replace


def _at_once(loop: tirx.For, dots: DotProducts) -> tirx.Stmt:
    """Return the block inside a loop over lanes and one over terms, which adds all of their products."""
    lanes, over_terms, realize = int(loop.extent), loop.body, loop.body.body
    axes, first = bindings(realize), [(loop.loop_var, tirx.const(0, "int32"))]
    (term,) = (axis.var for axis, value in axes if value.same_as(over_terms.loop_var))
    kept = [(axis, substituted(value, first)) for axis, value in axes if not axis.var.same_as(term)]
    update = realize.block.body
    weight, read = (factor.value for factor in (update.value.b.a, update.value.b.b))
    inputs = [_vector(read, _at(read, term, number), lanes) for number in range(dots.terms)]
    weights = _vector(weight, _at(weight, term, 0), dots.terms)
    total = _dot_product(dots, _vector(update.value.a, update.indices, lanes), inputs, weights, lanes)
    return s_tir.SBlockRealize(
        [value for _, value in kept],
        realize.predicate,
        _block(realize.block, [axis for axis, _ in kept], update, total, lanes),
    )


def _block(
    like: s_tir.SBlock, axes: Sequence[tirx.IterVar], update: tirx.BufferStore, total: Expr, lanes: int
) -> s_tir.SBlock:
    """Return a block that writes a vector of sums."""
    sums, (*outer, place) = update.buffer, update.indices
    written = sums[(*outer, slice(place, place + lanes))]
    reads = [written if region.source.same_as(sums) else region for region in like.reads]
    return s_tir.SBlock(axes, reads, [written], like.name_hint, sums.vstore([*outer, place], total))


def _at(load: TensorLoad, term: tirx.Var, number: int) -> list[Expr]:
    """Return where a load reads for one term of a dot product."""
    return [substituted(index, [(term, tirx.const(number, "int32"))]) for index in load.indices]


def _vector(load: TensorLoad, indices: Sequence[Expr], lanes: int) -> Expr:
    """Return a load of neighbouring elements."""
    return load.source.vload(list(indices), f"{load.source.dtype}x{lanes}")


def _dot_product(dots: DotProducts, sums: Expr, inputs: Sequence[Expr], weights: Expr, lanes: int) -> Expr:
    """Return the sums [lanes] plus the products of inputs, [lanes] of each term, and weights [terms]."""
    factors = interleaved(dots, inputs, lanes), repeated(dots, weights, lanes)
    return tirx.call_llvm_pure_intrin(f"int32x{lanes}", dots.instructions[lanes], sums, *factors)
