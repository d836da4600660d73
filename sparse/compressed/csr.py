"""Compressed sparse rows (CSR): the nonzeros of a matrix, row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dlas.stack import Array, csr_bytes
from dlas.stack.array import Int32Array, Int64Array


@dataclass(frozen=True)
class Csr:
    """A matrix [rows, width] of numbers, or of blocks of them, in compressed sparse rows.

    The constructor neither copies nor checks; :meth:`check` does.

    References
    ----------
    DLAS paper, section 3.4.
    """

    values: Array
    """What is stored, row by row; [entries] or [entries, size of a block]."""
    columns: Int32Array
    """Ascending within a row; int32 [entries]."""
    starts: Int32Array
    """Index of each row's first entry; the last is the number of entries; int32 [rows + 1]."""
    width: int
    """Columns of the matrix."""

    @classmethod
    def of(cls, matrix: Array) -> Csr:
        """Return the CSR form of a dense matrix [rows, width] or [rows, width, size of a block].

        Blocks of zeros are left out.

        Raises
        ------
        ValueError
            If a value is not a finite number.
        """
        rows, columns = np.nonzero(matrix if matrix.ndim == 2 else matrix.any(axis=2))
        starts = np.searchsorted(rows, np.arange(len(matrix) + 1))
        csr = cls(matrix[rows, columns], columns.astype(np.int32), starts.astype(np.int32), matrix.shape[1])
        csr.check()
        return csr

    def check(self) -> None:
        """Check everything that a kernel relies on.

        Raises
        ------
        ValueError
            If sizes do not match, row starts decrease or do not end with the entries, a
            column is out of range or not greater than the one before it, or a value is not
            finite; the message says which and where.
        """
        self._check_sizes()
        _refuse(np.diff(self.starts) < 0, "row {} ends before it starts")
        outside = (self.columns < 0) | (self.columns >= self.width)
        _refuse(outside, f"the column of entry {{}} is not one of 0 to {self.width - 1}")
        follows = np.diff(self.row_of_each, prepend=-1) == 0
        back = np.diff(self.columns, prepend=-1) <= 0
        _refuse(follows & back, "the column of entry {} is not behind the one before it")
        if np.issubdtype(self.values.dtype, np.floating):
            an_entry = math.prod(self.values.shape[1:])
            finite = np.isfinite(self.values).reshape(len(self.values), an_entry)
            _refuse(~np.all(finite, axis=1), "the value of entry {} is not a finite number")

    def _check_sizes(self) -> None:
        for name, array in (("columns", self.columns), ("starts", self.starts)):
            if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
                raise _wrong(f"{name} are {array.dtype} {list(array.shape)}, not one row of integers")
        if self.values.ndim not in (1, 2) or len(self.values) != len(self.columns):
            raise _wrong(f"values {list(self.values.shape)} do not match {len(self.columns)} columns")
        ends = [int(start) for start in (*self.starts[:1], *self.starts[-1:])]
        if ends != [0, len(self.columns)]:
            raise _wrong(f"starts begin and end with {ends}, not with 0 and the {len(self.columns)} entries")

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> Int32Array:
        """Entries of each row [rows]."""
        return np.diff(self.starts)

    @property
    def row_of_each(self) -> Int64Array:
        """The row of each entry [entries]."""
        return np.repeat(np.arange(self.rows), self.lengths)

    @property
    def density(self) -> float:
        """Share of the matrix that is stored; 0 of an empty one."""
        return len(self.columns) / max(self.rows * self.width, 1)

    @property
    def stored_bytes(self) -> int:
        """What values, columns and starts take, indices of 32 bits."""
        an_entry = self.values.dtype.itemsize * math.prod(self.values.shape[1:])
        return csr_bytes(self.rows, len(self.columns), an_entry)

    def dense(self) -> Array:
        """Return the matrix with its zeros, [rows, width] or [rows, width, size of a block]."""
        matrix = np.zeros((self.rows, self.width, *self.values.shape[1:]), self.values.dtype)
        matrix[self.row_of_each, self.columns] = self.values
        return matrix


def balanced_order(lengths: Array) -> Int32Array:
    """Return an order of rows in which any run of neighbours has about its share of the entries.

    Threads compute runs of rows, and their number is unknown when a weight is packed.  So
    the rows are dealt out to two halves in turns, the longest first, recursively.

    Parameters
    ----------
    lengths : ndarray, [rows]
    """
    return _dealt(np.argsort(-lengths, kind="stable")).astype(np.int32)


def _dealt(rows: Int64Array) -> Int64Array:
    """Split rows, the longest first, in two halves: the first has rows 0 and 3 of every four."""
    if len(rows) < 3:
        return rows
    outer = np.isin(np.arange(len(rows)) % 4, (0, 3))
    return np.concatenate([_dealt(rows[outer]), _dealt(rows[~outer])])


def _refuse(wrong: Array, words: str) -> None:
    """Raise an error if ``wrong`` holds anywhere; ``words`` are formatted with the first such index."""
    if wrong.any():
        raise _wrong(words.format(int(np.argmax(wrong))))


def _wrong(words: str) -> ValueError:
    return ValueError(f"not compressed sparse rows: {words}")
