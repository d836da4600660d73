"""Scatter outputs through an index array, which TE cannot express."""

from __future__ import annotations

import math

import tvm_ffi
from tvm import s_tir, tirx

from dlas.sparse.compressed.blocks import whole
from dlas.stack import Conv, stored_type

FINISHED, REMOVED = "finished", "removed"
"""Stages of outputs with their tail: of the remaining filters, and of the removed ones."""


def scattered(function: tirx.PrimFunc, conv: Conv, filters: int) -> tirx.PrimFunc:
    """Return a function whose stages ``finished`` and ``removed`` write to one output [n, k, p, q].

    Parameters
    ----------
    function : tirx.PrimFunc
        With both stages' tensors as its last parameters, or with ``finished`` alone.
    filters : int
        Which parameter is the index array [groups, k] of ``finished``, in which ``conv.k`` marks
        filters that are not written; the next is that [k] of ``removed``.
    """
    params = list(function.params)
    output = tirx.decl_buffer(conv.output_shape, stored_type(conv.output_type), "output")
    stages = {FINISHED: params[filters]}
    if params[-2].name == REMOVED:
        stages[REMOVED] = params[filters + 1]
    every = sum(math.prod(map(int, places.shape)) for places in stages.values()) == conv.k

    def moved(block: s_tir.SBlock) -> s_tir.SBlock:
        places = stages.get(block.name_hint)
        return block if places is None else _moved(block, output, places, every)

    body = tvm_ffi.structural_map(function.body, [(s_tir.SBlock, moved)])
    return tirx.PrimFunc([*params[: -len(stages)], output], body, function.ret_type, function.attrs)


def _moved(block: s_tir.SBlock, output: tirx.Buffer, places: tirx.Buffer, every: bool) -> s_tir.SBlock:
    """Return a block that scatters through ``places``, with a guard unless ``every`` index is valid."""
    n, k, p, q = block.body.indices
    filters = int(output.shape[1])
    at = places[k] if len(places.shape) == 1 else places[k // places.shape[1], k % places.shape[1]]
    store = tirx.BufferStore(output, block.body.value, [n, at, p, q])
    reads = [region for region in block.reads if not region.source.same_as(places)]
    return s_tir.SBlock(
        block.iter_vars,
        [*reads, whole(places)],
        [output[n, 0:filters, p, q]],
        block.name_hint,
        store if every else tirx.IfThenElse(at < filters, store, None),
    )
