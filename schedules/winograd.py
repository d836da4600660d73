"""Winograd convolution: 3x3 kernels with fewer multiplications, in tiles of 2x2 or 4x4 outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from tvm import te
from tvm.s_tir import Schedule

from dlas.schedules.loops.transformations import only_nchw
from dlas.schedules.loops.vectors import blocked_layout, blocks_for
from dlas.schedules.minimal_filtering.loops import compute_panels, tile_by_tile
from dlas.schedules.minimal_filtering.matrices import KERNEL, transforms
from dlas.schedules.minimal_filtering.space import panel_points
from dlas.schedules.minimal_filtering.stages import (
    TileGrid,
    filters_together,
    from_tiles,
    multiply,
    pad_blocks,
    to_tiles,
)
from dlas.stack import (
    BFLOAT16,
    Algorithm,
    Array,
    Conv,
    Decisions,
    Tail,
    Target,
    from_bfloat16,
    to_bfloat16,
)


@dataclass(frozen=True)
class Winograd(Algorithm):
    """Transform tiles of the input, multiply them by transformed filters, and transform back.

    A tile of m x m outputs takes (m + 2)^2 multiplications a channel instead
    of 9 m^2: 2.25 times fewer for m = 2, four times fewer for m = 4.  Filters are
    transformed when the network is compiled, which makes them 1.8 or four times larger.
    Tiles at the edge compute outputs that are dropped.  Inputs and filters in 16 bits are
    transformed and multiplied in float32.

    References
    ----------
    A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
    B. Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
    Convolution for Deep Neural Networks", 2020 (the points of the larger tile).
    DLAS paper, section 4.4 (the minimal schedule).
    """

    tolerance: ClassVar[float] = 2e-5
    tile: Literal[2, 4] = 4
    """m, the outputs along each side of a tile. With 512 channels of normally distributed inputs the error is
    1e-6 of the largest output for m = 2 and 5e-6 for m = 4, against 2.5e-6 for a direct convolution.
    """
    layout: Literal["nchw", "blocked"] = "nchw"
    """``nchw`` reads and writes NCHW. ``blocked`` keeps activations in a blocked layout (NCHW16c) from one
    layer to the next, so that vectors hold channels as they are.
    """

    def supports(self, conv: Conv) -> str | None:
        """Return why ``conv`` is declined: all but plain 3x3 kernels, with sums in float32."""
        if (conv.r, conv.s) != (KERNEL, KERNEL):
            return f"only 3x3 kernels are transformed, not {conv.r}x{conv.s}"
        if conv.strides != (1, 1):
            return f"only strides of 1 are possible, not {conv.strides}"
        if conv.dilation != (1, 1):
            return f"only dilations of 1 are possible, not {conv.dilation}"
        if conv.accumulator_type != "float32":
            return f"the transforms need float32, not {conv.accumulator_type}"
        return only_nchw(conv)

    def layouts(self, conv: Conv, target: Target) -> tuple[str, str]:
        """Return blocked layouts with ``layout="blocked"``, but for convolutions in groups."""
        if self.layout == "nchw" or conv.groups > 1:
            return "NCHW", "NCHW"
        blocks = blocks_for(conv, target)
        return blocked_layout(conv.c, blocks), blocked_layout(conv.k, blocks)

    def pack(self, weight: Array, conv: Conv) -> tuple[Array, ...]:
        """Return the filters G g G^T [k / t, m + 2, m + 2, c / groups, t], computed in float64.

        Zeros fill the last block. Filters stored in 16 bits become float32: rounded again, they would err
        more than a direct convolution.
        """
        _, g, _ = transforms(self.tile)
        t = filters_together(conv)
        if conv.weight_type == BFLOAT16:
            weight = from_bfloat16(weight)
        filters = (g @ weight.astype(np.float64) @ g.T).astype(conv.accumulator_type)
        whole = np.pad(filters, [(0, -conv.k % t), (0, 0), (0, 0), (0, 0)])
        blocks = whole.reshape(-1, t, *whole.shape[1:])
        return (blocks.transpose(0, 3, 4, 2, 1),)

    def unpack(self, packed: Sequence[Array], conv: Conv) -> Array:
        """Return the weight [k, c / groups, 3, 3]."""
        (blocks,) = packed
        _, g, _ = transforms(self.tile)
        back = np.linalg.pinv(g)
        whole = blocks.transpose(0, 4, 3, 1, 2).reshape(-1, *blocks.shape[3:0:-1])
        weight: Array = back @ whole[: conv.k] @ back.T
        return to_bfloat16(weight) if conv.weight_type == BFLOAT16 else weight.astype(conv.weight_type)

    def compute(self, x: te.Tensor, packed: Sequence[te.Tensor], conv: Conv, tail: Tail) -> te.Tensor:
        """Return the finished output of ``x``, both in the layouts that ``conv`` names."""
        (filters,) = packed
        grid = TileGrid.of(conv, self.tile)
        tiles = to_tiles(pad_blocks(x, conv, grid), conv, grid)
        return tail(from_tiles(multiply(tiles, filters, conv, grid), conv, grid))

    def schedule(self, schedule: Schedule, conv: Conv, target: Target) -> None:
        """Share among threads the input transform, then products and output transform, then the tail."""
        tile_by_tile(schedule, conv, target)

    def space(self, conv: Conv, target: Target) -> Sequence[Decisions]:
        """Return panels of tiles, and register tiles of their products."""
        return () if target.on_gpu else panel_points(conv, self.tile, target)

    def apply(self, schedule: Schedule, conv: Conv, target: Target, decisions: Decisions) -> None:
        """Transform a panel of tiles, multiply it by groups of filters in registers, and transform back."""
        compute_panels(schedule, conv, self.tile, target, decisions)
