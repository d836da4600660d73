"""Direct convolution with compressed sparse rows (CSR); each row is a filter."""

from __future__ import annotations

from dataclasses import dataclass

from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class CsrDirect(SparseRows):
    """Multiply by the nonzeros of each filter only, in NCHW, without im2col.

    Zeros cost nothing; each nonzero loads one vector of input from memory for each vector
    multiply-add, so multiply-adds run at half of a dense convolution's rate at most.

    References
    ----------
    DLAS paper, sections 3.4 (compressed sparse rows, direct) and 4.4 (the minimal schedule).
    """
