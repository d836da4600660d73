"""Rows: what was asked, what happened, what was measured, where.

Rows are appended to ``results.jsonl``, one JSON object a line, and never
edited; where an id occurs twice (a retry, a changed source) the last one holds.
Units are SI and stand as the name's suffix; samples are stored and statistics
derived; missing is null.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dlas.errors import InputError
from dlas.store.journal import Held, Journal

SCHEMA = 1
STATUSES = ("ok", "failed", "timeout", "unsupported", "wrong")
FILE = "results.jsonl"
CURVES = "tuning"
"""Folder beside it: how each tuned row's search went, best time against trials and seconds."""
LEADING_ID = re.compile(r'\{"id":"(\w+)"')
"""A row starts with its id, so that finding the last row of each need not parse them all."""


@dataclass
class Row:
    """One point's answer.

    Parameters
    ----------
    id : str
        Hash of the point's full content.
    key : str
        Hash of everything else the answer depends on: artifacts, their
        sources, toolchain, target and measurement settings.
    status : {"ok", "failed", "timeout", "unsupported", "wrong"}
    reason : str or None
        Why the status is not ``ok``.
    step : str or None
        The step in which it ended: network, tune, build, check or measure.
    latency_s : list of float
        Samples, seconds an inference of the whole batch.
    error : float or None
        Largest ``max|y - reference| / max|reference|`` seen in the check.
    accuracy : float or None
        The network's, on all test images, by its framework.
    compiled_accuracy : mapping or None
        The build's on a bounded number of images: accuracy, low, high, images.
    edges : list of mapping
        Which convolution reads what another one wrote, where a change of layout would come.
    tuning : mapping or None
        ``trials``, ``valid`` ones and the ``seconds`` that they took when they
        were made, which may have been for another row.
    """

    id: str
    key: str
    study: str
    dataset: dict[str, Any]
    model: dict[str, Any]
    compression: dict[str, Any]
    algorithm: dict[str, Any]
    compiler: dict[str, Any]
    hardware: dict[str, Any]
    batch: int
    seed: int
    status: str
    reason: str | None = None
    step: str | None = None
    latency_s: list[float] = field(default_factory=list)
    calls_per_sample: int | None = None
    bound: str | None = None
    first_run_s: float | None = None
    sentinel_s: list[float] = field(default_factory=list)
    load: float | None = None
    steal: float | None = None
    noisy: bool | None = None
    noisy_reason: str | None = None
    peak_memory_bytes: int | None = None
    energy_j: float | None = None
    layers: list[dict[str, Any]] = field(default_factory=list)
    edges: list[dict[str, Any]] = field(default_factory=list)
    coverage: dict[str, Any] | None = None
    tuning: dict[str, Any] | None = None
    expected_speedup: float | None = None
    error: float | None = None
    accuracy: float | None = None
    validation_accuracy: float | None = None
    test_images: int | None = None
    compiled_accuracy: dict[str, Any] | None = None
    note: str | None = None
    reached: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None
    nonzeros: int | None = None
    macs: int | None = None
    effective_macs: int | None = None
    model_bytes: int | None = None
    csr_bytes: int | None = None
    library_bytes: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    measure: dict[str, Any] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    started: str | None = None
    schema: int = SCHEMA

    @classmethod
    def parse(cls, line: str) -> Row:
        """Return the row in one line of a results file; keys it does not know are left out.

        Raises
        ------
        ValueError
            If the line is not a row.
        """
        raw = json.loads(line)
        if not isinstance(raw, dict) or raw.get("status") not in STATUSES:
            raise ValueError("not a row: no known status")
        known = {f.name for f in fields(cls)}
        try:
            return cls(**{key: value for key, value in raw.items() if key in known})
        except TypeError as error:
            raise ValueError(f"not a row: {error}") from None

    def line(self) -> str:
        """Return the row as one line of JSON, newline included."""
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False) + "\n"


def read_rows(folder: Path) -> Iterator[Row]:
    """Yield a folder's current rows: the last one of each id, in the order of the file.

    A torn last line (a sweep was killed while writing it) is passed over; it
    was never a row.

    Raises
    ------
    InputError
        If the folder holds no results, or a line in the middle is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"no {FILE} in {str(folder)!r}: give the folder that `dlas run --out` wrote")
    last = {row_id: number for number, row_id in enumerate(_ids(path))}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if not line.endswith("\n"):
                return
            row = _parsed(path, number, line)
            if last[row.id] == number:
                yield row


def _ids(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if line.endswith("\n"):
                leading = LEADING_ID.match(line)
                yield leading.group(1) if leading else _parsed(path, number, line).id


def _parsed(path: Path, number: int, line: str) -> Row:
    try:
        return Row.parse(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number + 1}: {error}") from None


class Results:
    """The one writer of a folder's rows.

    Parameters
    ----------
    folder : Path
        Created if it is not there.

    Raises
    ------
    InputError
        If another sweep is writing to the folder.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        try:
            self._journal = Journal(folder / FILE)
        except Held:
            raise InputError(f"another sweep is writing to {str(folder)!r}; give another --out") from None
        self.known = {row.id: (row.status, row.key) for row in read_rows(folder)}

    def append(self, row: Row) -> None:
        """Write a row so that it survives a crash, or not at all.

        Raises
        ------
        OSError
            If the disk is full; the file is left as it was.
        """
        self._journal.append(row.line())
        self.known[row.id] = (row.status, row.key)

    def close(self) -> None:
        """Release the folder."""
        self._journal.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
