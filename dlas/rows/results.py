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

from dlas.errors import InputError
from dlas.rows.schema import (
    Artifacts,
    CompiledAccuracy,
    Coverage,
    Device,
    Edge,
    Environment,
    Layer,
    Measure,
    PartContent,
    Reached,
    Seconds,
    TuningSummary,
)
from dlas.store.journal import FileInUse, Journal

SCHEMA = 1
STATUSES = ("ok", "failed", "timeout", "unsupported", "wrong")
FILE = "results.jsonl"
CURVES = "tuning"
"""Folder beside it: how each tuned row's search went, best time against trials and seconds."""
LEADING_ID = re.compile(r'\{"id":"(\w+)"')
"""A row starts with its id, so that finding the last row of each need not parse them all."""


@dataclass
class Row:
    """One point's answer: what was asked, what happened, what was measured, where.

    A quantity is null where the point ended before it was known; a description
    says "Null" where there are other reasons.  The nested mappings are
    in :mod:`dlas.rows.schema`.

    Parameters
    ----------
    id : str
        Hash of what was asked: the same point has the same id in every study and folder.
    key : str
        Hash of everything else the answer depends on: artifacts, their
        sources, toolchain, target and measurement settings.
    study : str
        Name of the study.
    dataset : mapping
        The dataset: its ``name`` and options.
    model : mapping
        The model: its ``name`` and options.
    compression : mapping
        The compression: its ``name`` and options, or the techniques of a ``chain``.
    algorithm : mapping
        The algorithm of convolutions; ``library`` where the compiler brings its own kernels.
    compiler : mapping
        The compiler: its ``name`` and options.
    hardware : mapping
        The hardware profile: its ``name`` and options.
    batch : int
        Images an inference.
    seed : int
        Seed of everything random.
    status : {"ok", "failed", "timeout", "unsupported", "wrong"}
        How the point ended; ``wrong`` is a build whose outputs differ from its network's.
    reason : str
        Why the status is not ``ok``. Null where it is ``ok``.
    step : str
        The step in which it ended: network, tune, build, check or measure. Null where all were done.
    latency_s : list of float, s
        Samples: time of an inference of the whole batch. Empty where nothing was measured.
    calls_per_sample : int
        Inferences that a sample is the mean of: fast programs are called several times.
    bound : str
        What ended the measurement: ``repeats`` or ``seconds``, as the study limits them.
    first_run_s : float, s
        Time of the first inference, which is no sample.
    sentinel_s : list of float, s
        Times of a small fixed program, before and after each slice of samples: how fast the machine was.
    load : float
        Share of the processors that other processes used meanwhile. Null where the system does not say it.
    steal : float
        Share of the processors' time that the hypervisor gave to other machines. Null where the system
        does not say it.
    noisy : bool
        Whether the measurement was disturbed, and stayed so when it was repeated.
    noisy_reason : str
        What disturbed it. Null where nothing did.
    peak_memory_bytes : int, B
        Most memory that loading and running the program added. Null where the system does not say it.
    energy_j : float, J
        Energy of an inference. Null: no driver measures it yet.
    layers : list of Layer
        The build's convolutions with their times, then its other operators.
    edges : list of Edge
        Which convolution reads what another one wrote: where a layout may have to change. Empty where the
        compiler does not say it.
    coverage : Coverage
        How much the algorithm asked for computes. Null for a compiler with its own kernels.
    tuning : TuningSummary
        The search for schedules. Null where the compiler does not search.
    expected_speedup : float
        What the compression alone promises: 1 / (1 - ratio) for pruning, times 32 / bits for types.
    error : float
        Largest difference between the build's outputs and its network's, as a share of the network's
        largest output.
    accuracy : float
        Share of all test images that the network classifies rightly, by its framework. Null where it is
        untrained or images have no labels.
    validation_accuracy : float
        The same share of the validation images, on which levels are chosen. Null where it is untrained or
        images have no labels.
    test_images : int
        Test images behind ``accuracy``. Null where ``accuracy`` is.
    compiled_accuracy : CompiledAccuracy
        Accuracy of the build, on a bounded number of test images. Null where ``accuracy`` is.
    note : str
        What else there is to know of the network. Null where there is nothing.
    reached : Reached
        What the compression attained. Empty for the dense network.
    parameters : int
        Parameters of the network.
    nonzeros : int
        Parameters that are not zero.
    macs : int
        Multiply-adds of its convolutions and linear layers, for one image.
    effective_macs : int
        Those of them whose weight is not zero.
    model_bytes : int, B
        Size of the parameters, in their types.
    csr_bytes : int, B
        The same with the weights of convolutions in compressed sparse rows.
    library_bytes : int, B
        Size of the compiled library. Null where the compiler makes none.
    seconds : Seconds
        How long each step took; a step that found its result in the cache is not among them.
    artifacts : Artifacts
        Keys of what the steps made, in the cache.
    measure : Measure
        How long and how often to measure, as the study says.
    device : Device
        The device in full. Empty where the point ended before measuring.
    environment : Environment
        Versions and host.
    started : str
        When the point was started, ISO 8601 in UTC.
    schema : int
        Version of this list of fields.
    """

    id: str
    key: str
    study: str
    dataset: PartContent
    model: PartContent
    compression: PartContent
    algorithm: PartContent
    compiler: PartContent
    hardware: PartContent
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
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    coverage: Coverage | None = None
    tuning: TuningSummary | None = None
    expected_speedup: float | None = None
    error: float | None = None
    accuracy: float | None = None
    validation_accuracy: float | None = None
    test_images: int | None = None
    compiled_accuracy: CompiledAccuracy | None = None
    note: str | None = None
    reached: Reached = field(default_factory=Reached)
    parameters: int | None = None
    nonzeros: int | None = None
    macs: int | None = None
    effective_macs: int | None = None
    model_bytes: int | None = None
    csr_bytes: int | None = None
    library_bytes: int | None = None
    seconds: Seconds = field(default_factory=Seconds)
    artifacts: Artifacts = field(default_factory=Artifacts)
    measure: Measure = field(default_factory=Measure)
    device: Device = field(default_factory=Device)
    environment: Environment = field(default_factory=Environment)
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

    A torn last line (a sweep was killed while writing it) is left out; it
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
        except FileInUse:
            raise InputError(f"another sweep is writing to {str(folder)!r}; give another --out") from None
        self.existing = {row.id: (row.status, row.key) for row in read_rows(folder)}

    def append(self, row: Row) -> None:
        """Write a row so that it survives a crash, or not at all.

        Raises
        ------
        OSError
            If the disk is full; the file is left as it was.
        """
        self._journal.append(row.line())
        self.existing[row.id] = (row.status, row.key)

    def close(self) -> None:
        """Release the folder."""
        self._journal.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
