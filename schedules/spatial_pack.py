"""Spatial pack convolution: input and filters packed so that what is used together is contiguous."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te
from tvm.ir import Expr

from dlas.schedules.loops.dot_products import dot_products, tap_products
from dlas.schedules.loops.halves import multiplies_halves
from dlas.schedules.loops.numbers import converted
from dlas.schedules.loops.transformations import out_of_blocks
from dlas.schedules.spatial_packing.blocks import SumPlace, factors_of, joins_rows, rows_and_columns
from dlas.schedules.spatial_packing.chains import InChains
from dlas.schedules.spatial_packing.channels import OVER_CHANNELS, OverChannels
from dlas.schedules.spatial_packing.form import SpatialForm
from dlas.schedules.spatial_packing.inputs import pixels_of
from dlas.schedules.spatial_packing.taps import OverTaps
from dlas.stack import Algorithm, Conv, Tail, Target


@dataclass(frozen=True)
class SpatialPack(SpatialForm):
    """Compute filters in blocks from packed filters and a packed input.

    Filters are packed when the network is compiled, [k / t, c / u, r, s, u, t]: the
    weights by which a block of t filters multiplies a pixel are contiguous.  Where the
    processor has instructions for numbers smaller than float32, another form of
    ``spatial_packing/`` packs for those.

    Parameters
    ----------
    layout : {"nchw", "blocked"}
        ``nchw`` reads and writes NCHW, as in the paper, and packs the input at run
        time into tiles, each with all that a tile of the output reads.
        ``blocked`` keeps activations in a blocked layout (NCHW16c) from one layer to
        the next, so that nothing is packed at run time.

    References
    ----------
    DLAS paper, sections 3.4 (spatial pack) and 4.4 (the minimal schedule).
    """

    def for_layer(self, conv: Conv, target: Target) -> Algorithm:
        """Return the form for the target's instructions, where it has such for the types of ``conv``.

        Classes derived from this one keep their own loops.
        """
        if type(self) is not SpatialPack:
            return self
        form: InChains | OverChannels
        dots = dot_products(conv, target)
        if multiplies_halves(conv, target):
            form = InChains(self.layout)
        elif dots is None:
            return self
        elif tap_products(self.laid_out(conv, target), target):
            return OverTaps(self.layout)
        else:
            form = OVER_CHANNELS[dots](self.layout)
        return form if form.takes(form.laid_out(conv, target)) else self

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        (filters,) = packed
        blocks, outer, _, _, inner, t = (int(extent) for extent in filters.shape)
        factors = factors_of(pixels_of(x, conv, self.layout), filters, conv)
        co, ci = te.reduce_axis((0, outer), "co"), te.reduce_axis((0, inner), "ci")
        r, s = te.reduce_axis((0, conv.r), "r"), te.reduce_axis((0, conv.s), "s")

        def element(n: Expr, block: Expr, p: Expr, q: Expr, lane: Expr) -> Expr:
            value, weight = factors(SumPlace(n, block, p, q, lane), co, r, s, ci)
            product = converted(value, conv.accumulator_type) * converted(weight, conv.accumulator_type)
            return te.sum(product, axis=[co, r, s, ci])

        shape = (conv.n, blocks, *rows_and_columns(conv, joins_rows(conv)), t)
        return tail(out_of_blocks(te.compute(shape, element, name="conv"), conv))
