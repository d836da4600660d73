"""Sparse spatial pack convolution: the input packed into tiles, each with all that an output tile reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.sparse.compressed.planes import Planes
from dlas.sparse.compressed.rows import SparseRows
from dlas.sparse.compressed.tiles import Tiles


@dataclass(frozen=True)
class CsrSpatialPack(SparseRows):
    """Multiply by the nonzeros of each filter, tile by tile of the output, from a packed input, in NCHW.

    A tile of the input has all channels of what a tile of the output reads, so it is still
    in the cache from packing when it is multiplied; what tiles share is packed twice.

    References
    ----------
    DLAS paper, sections 3.4 (compressed sparse rows, spatial pack) and 4.4 (the minimal schedule).
    """

    inputs: ClassVar[type[Planes]] = Tiles
