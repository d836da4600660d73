"""Direct convolution by block compressed sparse rows, a row several filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class BsrDirect(SparseRows):
    """Multiply by the blocks of neighbouring filters' weights at one place that are not all zero, in NCHW.

    A vector of input that is read serves every filter of a block.  The network has to be
    pruned by such blocks (``block_pruning``): pruned weight by weight, hardly a block is
    all zero.

    Parameters
    ----------
    size : int
        Filters of a block; where it does not divide a group's filters, the last block is smaller.

    References
    ----------
    S. Gray, A. Radford and D. Kingma, "GPU Kernels for Block-Sparse Weights", 2017.
    """

    size: Annotated[int, Field(ge=2, le=16)] = 4

    @property
    def height(self) -> int:
        """Filters of a row."""
        return self.size
