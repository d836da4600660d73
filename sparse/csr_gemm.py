"""Convolution as a product of a sparse matrix of filters and a dense one of patches (im2col)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.sparse.compressed.patches import Patches
from dlas.sparse.compressed.planes import Planes
from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class CsrGemm(SparseRows):
    """Multiply the nonzeros of the filters [k, c r s] by the patches [c r s, p q], in NCHW.

    Im2col is applied to a few rows of the output at a time, right before these are
    computed, with one copy for each column of the kernel.  Loads are then aligned, which
    is faster; the copies take time and space in the cache.

    References
    ----------
    DLAS paper, sections 3.4 (compressed sparse rows, GEMM) and 4.4 (the minimal schedule).
    """

    inputs: ClassVar[type[Planes]] = Patches
