"""Direct convolution with block compressed sparse rows (BSR); a row is several filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class BsrDirect(SparseRows):
    """Skip blocks of zeros, each the weights of neighbouring filters at one kernel position, in NCHW.

    Each vector of input that is loaded serves every filter of a block.  The network has to be
    pruned by such blocks (``block_pruning``): pruned weight by weight, hardly any block is
    all zero.

    References
    ----------
    S. Gray, A. Radford and D. Kingma, "GPU Kernels for Block-Sparse Weights", 2017.
    """

    size: Annotated[int, Field(ge=2, le=16)] = 4
    """Filters of a block; where it does not divide a group's filters, the last block is smaller."""

    @property
    def height(self) -> int:
        """Filters of a row."""
        return self.size
