"""Direct convolution by compressed sparse rows, a row a filter."""

from __future__ import annotations

from dataclasses import dataclass

from dlas.sparse.compressed.rows import SparseRows


@dataclass(frozen=True)
class CsrDirect(SparseRows):
    """Multiply by the nonzeros of each filter alone, in NCHW, without writing out patches of the input.

    What a zero takes is saved; what a nonzero takes is one vector of input from memory for
    each vector of products, so half of a dense convolution's speed is the most.

    References
    ----------
    DLAS paper, sections 3.4 (compressed sparse rows, direct) and 4.4 (the minimal schedule).
    """
