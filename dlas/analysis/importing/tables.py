"""The cells of a table file by column: CSV, plain or packed with xz, or Parquet.

The file comes from elsewhere, so that reading it has bounds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from dlas.errors import InputError, unknown
from dlas.sweep.rows.files import ReadingLimits, lines

SUFFIXES = (".csv", ".csv.xz", ".parquet")
MOST_CELLS = 50_000_000
"""Most cells of a table, of which each empty one takes eight bytes; half a million rows of all columns."""
BOUNDS = ReadingLimits(total_bytes=1 << 30)


@dataclass(frozen=True)
class SourceTable:
    """The cells of a table."""

    file: Path
    columns: dict[str, list[Any]]
    """The cells by column, None for an empty one; texts in CSV, values in Parquet."""
    numbers: list[int]
    """Where each row stands: its line in a CSV file, or else its number, from 1."""
    counted: Literal["line", "row"]
    """What the numbers count."""

    def place(self, row: int, column: str | None = None) -> str:
        """Return where a row stands, for messages: ``measured.csv, line 5, column 'latency_s'``."""
        place = f"{self.file}, {self.counted} {self.numbers[row]}"
        return f"{place}, column {column!r}" if column else place


def read_table(path: Path) -> SourceTable:
    """Return the cells of a file.

    Raises
    ------
    InputError
        If it is no file with one of :data:`SUFFIXES`, is damaged, empty or too large, or its lines
        differ in length.
    """
    suffix = next((suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)), None)
    if suffix is None:
        raise unknown(f"suffix of {str(path)!r}", path.suffix, SUFFIXES)
    if not path.is_file():
        raise InputError(f"no file {str(path)!r}: give a table of measurements ({', '.join(SUFFIXES)})")
    try:
        if path.stat().st_size > BOUNDS.total_bytes:
            raise InputError(f"{path} has more than {BOUNDS.total_bytes:,} bytes: import it in pieces")
        table = _parquet(path) if suffix == ".parquet" else _csv(path)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    if not table.numbers:
        raise InputError(f"{path} holds no rows")
    return table


def _csv(path: Path) -> SourceTable:
    reader = csv.reader(_texts(path), strict=True)
    numbers: list[int] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header)
        columns: list[list[str | None]] = [[] for _ in header]
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{path}, line {reader.line_num}: {len(cells)} cells, and the header names {len(header)}"
                )
            numbers.append(reader.line_num)
            _check_cells(path, len(numbers) * len(header))
            for column, cell in zip(columns, cells, strict=True):
                column.append(cell if cell.strip() else None)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None
    return SourceTable(path, dict(zip(header, columns, strict=True)), numbers, "line")


def _texts(path: Path) -> Iterator[str]:
    """Yield the lines of a file without the mark with which spreadsheets begin it."""
    for number, line in enumerate(lines(path, BOUNDS), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        yield text if number > 1 else text.removeprefix("\ufeff")


def _check_header(path: Path, header: list[str]) -> None:
    if not header:
        raise InputError(f"{path} is empty: its first line names the columns")
    if len(header) == 1 and ";" in header[0]:
        raise InputError(f"{path}: its columns are separated by semicolons, and commas are expected")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path} has two columns {twice!r}")


def _check_cells(path: Path, cells: int) -> None:
    if cells > MOST_CELLS:
        raise InputError(f"{path} has more than {MOST_CELLS:,} cells: import it in pieces")


def _parquet(path: Path) -> SourceTable:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pa.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _check_header(path, names)
            _check_parquet(path, file.metadata)
            columns: dict[str, list[Any]] = {name: [] for name in names}
            unpacked = 0
            for batch in file.iter_batches():
                unpacked += batch.nbytes
                if unpacked > BOUNDS.total_bytes:
                    raise InputError(f"{path} unpacks to more than {BOUNDS.total_bytes:,} bytes")
                for name, cells in zip(names, batch.columns, strict=True):
                    columns[name] += cells.to_pylist()
            rows = file.metadata.num_rows
    except pa.ArrowException as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from None
    return SourceTable(path, columns, list(range(1, rows + 1)), "row")


def _check_parquet(path: Path, metadata: Any) -> None:
    """Refuse a file that says that it unpacks to more than its bounds."""
    _check_cells(path, metadata.num_rows * metadata.num_columns)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = sum(group.column(at).num_values for group in groups for at in range(group.num_columns))
    _check_cells(path, values)
    if sum(group.total_byte_size for group in groups) > BOUNDS.total_bytes:
        raise InputError(f"{path} unpacks to more than {BOUNDS.total_bytes:,} bytes: import it in pieces")
