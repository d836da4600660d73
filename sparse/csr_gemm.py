"""Convolution as a product of a sparse and a dense matrix: every output's patch is written out (im2col)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dlas.sparse.compressed.patches import Patches
from dlas.sparse.compressed.planes import Planes
from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class CsrGemm(SparseRows):
    """Multiply the nonzeros of the filters [k, c r s] by the patches [c r s, p q], in NCHW.

    Patches are written out for a few rows of the output at a time, right before these are
    computed, once for each column of the kernel.  A nonzero then reads from where a vector
    begins, which is faster than from anywhere; copies take their time, and more of the cache.

    References
    ----------
    DLAS paper, sections 3.4 (compressed sparse rows, GEMM) and 4.4 (the minimal schedule).
    """

    inputs: ClassVar[type[Planes]] = Patches
