"""The file of a results folder: plain, to which a sweep appends, or packed with xz, to keep and to read.

A packed file may come from elsewhere, so that reading it has bounds: the bytes that
it unpacks to, their ratio to its size, the length of a line and the memory of the decoder.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dlas.bench.store.toml import check_regular
from dlas.errors import InputError, listed

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A folder that ``dlas.run`` wrote, or several."""
FILE = "results.jsonl"
PACKED_FILE = "results.jsonl.xz"
RESULTS = frozenset((FILE, PACKED_FILE, "study.toml", "search.json", "predictions.jsonl"))
"""Files by which a folder for results is known; its study may be there before any row."""
MOST_NAMED = 3
"""Most files of another folder that a message names."""
PIECE_BYTES = 1 << 20
"""Bytes read and unpacked at a time."""


@dataclass(frozen=True)
class ReadingLimits:
    """What reading a packed file may cost."""

    total_bytes: int = 8 << 30
    """Most bytes that it unpacks to."""
    ratio: float = 1000.0
    """Most bytes that a byte of it unpacks to. Rows reach about 50, a file made to fill a disk 7000."""
    line_bytes: int = 64 << 20
    """Most bytes of a line: a row of a network with a thousand layers has about a megabyte."""
    decoder_bytes: int = 256 << 20
    """Most memory of the decoder, which the file chooses; ``xz -9`` needs 65 MiB."""


BOUNDS = ReadingLimits()


def paths_of(folders: Folders) -> list[Path]:
    """Return the folders in an argument that is one or several."""
    return [Path(folders)] if isinstance(folders, str | os.PathLike) else list(map(Path, folders))


def results_file(folder: Path) -> Path:
    """Return the file with a folder's rows, plain or packed.

    Raises
    ------
    InputError
        If the folder has neither, or both.
    """
    plain, packed = folder / FILE, folder / PACKED_FILE
    if plain.is_file() and packed.is_file():
        raise InputError(
            f"{str(folder)!r} has both {FILE} and {PACKED_FILE}: remove the one that is out of date"
        )
    if not plain.is_file() and not packed.is_file():
        if folder.is_file():
            raise InputError(f"{str(folder)!r} is a file: give the folder that `dlas run --out` wrote")
        raise InputError(f"no {FILE} in {str(folder)!r}: give the folder that `dlas run --out` wrote")
    return plain if plain.is_file() else packed


def holds_rows(folder: Path) -> bool:
    """Return whether a folder has a file of rows, plain or packed."""
    return (folder / FILE).is_file() or (folder / PACKED_FILE).is_file()


def check_appendable(folder: Path) -> None:
    """Refuse a file in the place of a results folder, and a folder whose rows are packed or imported.

    Raises
    ------
    InputError
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; rows are written to a folder")
    check_regular(folder / FILE, "rows")
    if (folder / PACKED_FILE).exists():
        raise InputError(
            f"{str(folder)!r} holds packed rows ({PACKED_FILE}), which stay as they are; give another `out=`"
        )
    if origin := imported_from(folder):
        raise InputError(
            f"{str(folder)!r} holds rows imported from {origin!r}, which stay as they are; give another "
            f"`out=`, and read both: `dlas table {folder} OTHER`"
        )


def check_own(folder: Path) -> None:
    """Refuse a folder of other files as the place for results: one that is neither empty nor for results.

    Raises
    ------
    InputError
    """
    held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    shown = [name for name in held if not name.startswith(".")]
    if shown and RESULTS.isdisjoint(shown):
        raise InputError(
            f"{str(folder)!r} holds other files ({listed(shown, MOST_NAMED)}), and rows are written to an "
            "empty folder or to one of rows; give another `out=`"
        )


def imported_from(folder: Path) -> str | None:
    """Return the name of the file that a folder's rows were imported from; None for rows of a sweep.

    An import fills a new folder, so that the first row tells.
    """
    try:
        with (folder / FILE).open("rb") as file:
            origin = json.loads(file.readline(BOUNDS.line_bytes))["imported"]
        return str(origin["file"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def complete_lines(path: Path, bounds: ReadingLimits = BOUNDS) -> Iterator[bytes]:
    """Yield the lines of a plain or packed file, but not an incomplete last one; raises as :func:`lines`."""
    return (line for line in lines(path, bounds) if line.endswith(b"\n"))


def lines(path: Path, bounds: ReadingLimits = BOUNDS) -> Iterator[bytes]:
    """Yield the lines of a plain or packed file, each with its end.

    Raises
    ------
    InputError
        If a packed file is damaged or exceeds its bounds.
    """
    return _packed_lines(path, bounds) if path.suffix == ".xz" else _plain_lines(path)


def _plain_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _packed_lines(path: Path, bounds: ReadingLimits) -> Iterator[bytes]:
    rest = b""
    for piece in _unpacked(path, bounds):
        first, *others = piece.split(b"\n")
        rest += first
        if others:
            yield rest + b"\n"
            yield from (line + b"\n" for line in others[:-1])
            rest = others[-1]
        if len(rest) > bounds.line_bytes:
            raise InputError(f"{path} has a line of more than {bounds.line_bytes:,} bytes: it holds no rows")
    if rest:
        yield rest


def _unpacked(path: Path, bounds: ReadingLimits) -> Iterator[bytes]:
    """Yield what a packed file unpacks to, in pieces."""
    size = path.stat().st_size
    # A file of a few rows may be packed better: the ratio counts from 16 MiB on.
    most = min(bounds.total_bytes, max(int(size * bounds.ratio), 16 * PIECE_BYTES))
    total = 0
    try:
        for piece in _decoded(path, bounds.decoder_bytes):
            total += len(piece)
            if total > most:
                raise InputError(
                    f"{path} ({size:,} bytes) unpacks to more than {most:,} bytes: too large for rows"
                )
            yield piece
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(f"{path} cannot be unpacked: {error}") from None


def _decoded(path: Path, decoder_bytes: int) -> Iterator[bytes]:
    """Yield the pieces of all streams of an xz file."""
    with path.open("rb") as file:
        packed = file.read(PIECE_BYTES)
        if not packed:
            raise EOFError("it is empty")
        while packed:
            decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=decoder_bytes)
            while not decoder.eof:
                yield decoder.decompress(packed, PIECE_BYTES)
                packed = b""
                if decoder.needs_input and not decoder.eof:
                    packed = file.read(PIECE_BYTES)
                    if not packed:
                        raise EOFError("it ends too early")
            # Zeros may stand between streams and behind the last one.
            packed = decoder.unused_data.lstrip(b"\0")
            while not packed and (piece := file.read(PIECE_BYTES)):
                packed = piece.lstrip(b"\0")
