"""Dense convolution of the channels and filters that pruning has left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from tvm import te, tirx
from tvm.ir import Expr
from tvm.ir.transform import Pass
from tvm.s_tir import Schedule

from dlas.schedules.direct import Direct
from dlas.schedules.gemm import Gemm
from dlas.schedules.loops.transformations import only_nchw, spread, stage
from dlas.schedules.spatial_pack import SpatialPack
from dlas.sparse.compressed.remaining import compact_conv, remaining
from dlas.sparse.compressed.scatter import FINISHED, REMOVED, scattered
from dlas.stack import Algorithm, Array, Conv, Decisions, Tail, Target

DENSE: dict[str, type[Algorithm]] = {"spatial_pack": SpatialPack, "gemm": Gemm, "direct": Direct}


@dataclass(frozen=True)
class ChannelIndex(Algorithm):
    """Skip input channels whose weights are all zero, and filters that are all zero.

    The format is the dense weight that remains and two index lists, of its channels and of
    its filters.  Input channels are gathered where the input is padded or read; outputs get
    their tail in registers and are scattered to their filters' places.  Outputs of removed
    filters are the tail applied to zero.  Groups without nonzeros are removed too; the
    others are padded to the channels and filters of the largest.

    In a network pruned by ``channel_pruning`` a pruned channel still holds its bias: its
    filter is skipped, as an input channel it is skipped only where the weights that read it
    are zero.

    References
    ----------
    DLAS paper, section 6.4, which names such a format as future work.
    """

    dense: Literal["spatial_pack", "gemm", "direct"] = "spatial_pack"
    """The algorithm of the remaining convolution."""

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: only layouts other than NCHW are."""
        return only_nchw(conv)

    def for_weight(self, weight: Array, conv: Conv) -> Algorithm:
        """Return the algorithm with the sizes of what remains of ``weight``."""
        channels, filters = remaining(weight, conv)
        groups, of_a_group = channels.shape
        return _Compact(self.dense, groups, of_a_group, filters.shape[1])

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the remaining weight as packed, channels [groups, c], filters [groups, k], removed [k].

        Filters that pad a block have the index ``conv.k``.  TVM has no empty arrays: of a weight
        of zeros one channel and one filter remain, and an empty ``removed`` is omitted.
        """
        channels, filters = remaining(weight, conv)
        rows = _with_a_zero(weight)[filters]
        columns = (channels % (conv.c // conv.groups))[:, None, :, None, None]
        left = np.take_along_axis(rows, columns, axis=2).reshape(-1, channels.shape[1], conv.r, conv.s)
        removed = np.setdiff1d(np.arange(conv.k), filters).astype(np.int32)
        dense = self._dense.pack(left, compact_conv(conv, channels.shape, filters.shape))
        return (*dense, channels, filters, *([removed] if len(removed) else []))

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, r, s] with its zeros."""
        (dense, channels, filters, *_) = packed
        left = self._dense.unpack([dense], compact_conv(conv, channels.shape, filters.shape))
        weight = np.zeros((conv.k + 1, conv.c // conv.groups, conv.r, conv.s), left.dtype)
        columns = np.broadcast_to(channels[:, None] % weight.shape[1], (*filters.shape, channels.shape[1]))
        weight[filters[..., None], columns] = left.reshape(*columns.shape, conv.r, conv.s)
        return weight[:-1]

    def arguments(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return what :meth:`pack` does: random indices would read out of bounds."""
        return self.pack(weight, conv)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> tirx.PrimFunc:
        """Return the function of (x, *packed, *tail.operands, output)."""
        dense, channels, filters, *removed = packed
        compact = compact_conv(conv, _shape(channels), _shape(filters))
        a_group = _shape(channels)[1]

        def element(n: Expr, c: Expr, h: Expr, w: Expr) -> Expr:
            return x[n, channels[c // a_group, c % a_group], h, w]

        gathered = te.compute((conv.n, compact.c, conv.h, conv.w), element, name="gather")
        finished = self._dense.compute(gathered, [dense], compact, _AtFilters(tail, filters))
        outputs = [finished]
        if removed:
            outputs = [_of_zero(tail, removed[0], conv), finished]
        function = te.create_prim_func([x, *packed, *tail.operands, *outputs])
        return scattered(function, conv, len(packed) - len(removed))

    @property
    def _dense(self) -> Algorithm:
        return DENSE[self.dense]()


@dataclass(frozen=True)
class _Compact(ChannelIndex):
    """The same with the sizes of the remaining weight, on which the loops depend."""

    groups: int = 1
    """Remaining groups, and the channels and filters of each."""
    channels: int = 1
    """Remaining groups, and the channels and filters of each."""
    filters: int = 1
    """Remaining groups, and the channels and filters of each."""

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share removed filters' outputs among threads; schedule the rest as the dense algorithm does."""
        self._prepare(schedule, target)
        self._dense.schedule(schedule, self._left(conv), target)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return the dense algorithm's design space for the remaining convolution; none for a GPU.

        There it copies inputs into shared memory, and which ones is known at run time only.
        """
        return () if target.on_gpu else self._dense.space(self._left(conv), target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Schedule the remaining convolution as the dense algorithm does."""
        self._prepare(schedule, target)
        self._dense.apply(schedule, self._left(conv), target, decisions)

    def passes(self, conv: Conv, target: Target) -> Sequence[Pass]:
        """Return the dense algorithm's passes for the remaining convolution."""
        return self._dense.passes(self._left(conv), target)

    def _prepare(self, schedule: Schedule, target: Target) -> None:
        schedule.compute_inline(schedule.get_sblock("gather"))
        removed = stage(schedule, REMOVED)
        if removed is not None:
            spread(schedule, removed, 4, target.on_gpu)

    def _left(self, conv: Conv) -> Conv:
        return compact_conv(conv, (self.groups, self.channels), (self.groups, self.filters))


@dataclass(frozen=True)
class _AtFilters:
    """The tail of the whole convolution, applied to the remaining filters."""

    tail: Tail
    filters: te.Tensor

    @property
    def operands(self) -> tuple[te.Tensor, ...]:
        return self.tail.operands

    def __call__(self, convolved: te.Tensor) -> te.Tensor:
        a_group = _shape(self.filters)[1]

        def point(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
            filter_ = self.filters[k // a_group, k % a_group]
            return self.tail.scalar(convolved(n, k, p, q), (n, filter_, p, q))

        return te.compute(convolved.shape, point, name=FINISHED)

    def scalar(
        self, value: Expr, index: Sequence[Expr], operands: Sequence[tirx.Buffer] | None = None
    ) -> Expr:
        return self.tail.scalar(value, index, operands)


def _of_zero(tail: Tail, removed: te.Tensor, conv: Conv) -> te.Tensor:
    """Return the outputs of removed filters: the tail applied to zero."""
    zero = tirx.const(0, conv.accumulator_type)

    def point(n: Expr, k: Expr, p: Expr, q: Expr) -> Expr:
        return tail.scalar(zero, (n, removed[k], p, q))

    return te.compute((conv.n, removed.shape[0], conv.p, conv.q), point, name=REMOVED)


def _with_a_zero(weight: Array) -> Array:
    """Return a weight with a filter of zeros after the last."""
    return np.concatenate([weight, np.zeros_like(weight[:1])])


def _shape(tensor: te.Tensor) -> tuple[int, ...]:
    return tuple(int(extent) for extent in tensor.shape)
