"""Export the table of rows as CSV or Parquet."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from dlas.bench.store.replacing import replacing
from dlas.errors import InputError, unknown
from dlas.sweep.rows.columns import SAMPLES

SUFFIXES = (".csv", ".parquet")


def export(frame: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a frame in the format of the file's suffix, and replace an existing file in one step.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.sweep.rows.frame.read` returned.
    path : path
        ``*.parquet`` holds every column, the raw samples as lists of seconds;
        ``*.csv`` omits the raw samples.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the suffix is another, or the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise unknown(f"suffix of {str(path)!r}", path.suffix, SUFFIXES)
    try:
        with replacing(path) as partial:
            if suffix == ".csv":
                frame.drop(columns=SAMPLES, errors="ignore").to_csv(partial, index=False)
            else:
                pyarrow.parquet.write_table(_arrow(frame), partial)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    return path


def _arrow(frame: pd.DataFrame) -> pa.Table:
    """Return the frame as Arrow, the samples typed even where no row has any."""
    plain = pa.Table.from_pandas(frame.drop(columns=SAMPLES, errors="ignore"), preserve_index=False)
    if SAMPLES not in frame:
        return plain
    return plain.append_column(SAMPLES, pa.array(frame[SAMPLES].tolist(), type=pa.list_(pa.float64())))
