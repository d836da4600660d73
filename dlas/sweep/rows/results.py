"""Rows: the point that was asked for, its status, its measurements, its machine.

Rows are appended to ``results.jsonl``, one JSON object a line, and never
edited; where an id occurs twice (a retry, a changed source) the last one counts.
A finished file may be packed (``results.jsonl.xz``): it is read likewise.
Units are SI and are the name's suffix; samples are stored and statistics derived;
missing values are null.
"""

from __future__ import annotations

import functools
import json
import re
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from dlas.bench.store.journal import FileInUse, Journal
from dlas.bench.store.replacing import make_folder
from dlas.errors import DamagedRows, InputError, listed
from dlas.stack import INFERENCE, ClockReading
from dlas.sweep.rows.files import FILE as FILE
from dlas.sweep.rows.files import check_appendable, complete_lines, results_file
from dlas.sweep.rows.labels import shortened
from dlas.sweep.rows.lines import Damaged, LineReader
from dlas.sweep.rows.schema import (
    Artifacts,
    CompiledAccuracy,
    CompressionResult,
    Coverage,
    Device,
    Edge,
    Environment,
    ImportSource,
    Layer,
    Measure,
    OtherRound,
    PartContent,
    Seconds,
    TuningSummary,
)

SCHEMA = 4
UNSTABLE = "unstable"
COMPLETED = ("ok", UNSTABLE)
"""Statuses of points whose every step was completed, so that all but perhaps their times is known."""
STATUSES = (*COMPLETED, "failed", "timeout", "unsupported", "wrong")
INTERRUPTION = "interruption"
"""The bound of a row whose measurement goes on with the next start."""
CURVES = "tuning"
"""Folder beside it: for each tuned row, the best time so far by trials and by seconds of search."""
LEADING_ID = re.compile(rb'\{"id":"(\w+)"')
"""A row starts with its id, so that the last row of each id is found without parsing all rows."""

ParsedT = TypeVar("ParsedT")
_as_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@dataclass
class Row:
    """The result of one point: its parts, its status, its measurements, its machine.

    A quantity is null where the point ended before it was known; a description
    says "Null" where there are other reasons.  The nested mappings are
    in :mod:`dlas.sweep.rows.schema`.
    """

    id: str
    """Hash of the parts, batch, seed and task: the same point has the same id in every study and folder."""
    key: str
    """Hash of everything else that the result depends on: artifacts, their sources, toolchain, target and
    measurement settings. Empty in an imported row.
    """
    study: str
    """Name of the study."""
    dataset: PartContent
    """The dataset: its ``name`` and options."""
    model: PartContent
    """The model: its ``name`` and options."""
    compression: PartContent
    """The compression: its ``name`` and options, or the techniques of a ``chain``."""
    algorithm: PartContent
    """The algorithm of convolutions; ``library`` where the compiler brings its own kernels."""
    compiler: PartContent
    """The compiler: its ``name`` and options."""
    hardware: PartContent
    """The hardware profile: its ``name`` and options."""
    batch: int
    """Images an inference, or a training step."""
    seed: int
    """Seed of all random numbers."""
    status: str
    """``ok``, or how the point ended: ``unstable``, with slices that differ so much that the times are no
    result (their medians by a factor of 2, or runs of the sentinel by 1.3), and everything else is;
    ``failed``, ``timeout``, ``unsupported``, or ``wrong``, a build whose outputs differ from its network's.
    """
    task: str = INFERENCE
    """What was timed: ``inference``, or a ``training`` step."""
    reason: str | None = None
    """Why the status is not ``ok``: of an ``unstable`` point, what differs and by how much. Null where it is
    ``ok``.
    """
    step: str | None = None
    """The step in which it ended: network, tune, build, memory, check or measure. Null where all were
    completed.
    """
    latency_s: list[float] = field(default_factory=list)
    """Samples: time of an inference of the whole batch, or of a training step on it. Empty where nothing was
    measured.
    """
    calls_per_sample: int | None = None
    """Inferences or training steps that a sample is the mean of: fast programs are called several times."""
    bound: str | None = None
    """What ended the measurement: ``repeats`` or ``seconds``, as the study limits them; ``interruption``
    where the sweep was interrupted before that, and goes on with it when it is run again.
    """
    first_run_s: float | None = None
    """Time of the first inference or training step, which is no sample: it loads, and some runtimes compile
    in it.
    """
    cpu_s: float | None = None
    """Processor time of an inference or training step, all threads together: the mean over the samples, with
    what threads spin while they wait. Null where the device's own clock times it: on GPUs and boards.
    """
    instructions: float | None = None
    """Instructions of an inference or training step: the mean over the samples of all threads, or one run of
    the kernels on one thread, as ``counter`` says. Null where nothing counts them: the processor's own
    counters are hidden on most virtual machines.
    """
    cycles: float | None = None
    """Cycles of the processor meanwhile. Null where ``counter`` is not ``perf_event_open``."""
    cache_misses: float | None = None
    """Reads of the last cache that it did not hold. Null where ``counter`` is not ``perf_event_open``."""
    counter: str | None = None
    """What counted instructions: ``perf_event_open``, the processor's own, or ``callgrind, x86-64-v3``,
    valgrind on the program built for that processor. Null where ``instructions`` is.
    """
    kernel_instructions: dict[str, int] = field(default_factory=dict)
    """Instructions by kernel, as callgrind counts them. Empty where it did not."""
    count_note: str | None = None
    """Why valgrind could not count. Null where it did, or was not asked."""
    slice_samples: list[int] = field(default_factory=list)
    """Samples of each slice, which are in this order; fewer where the time was nearly up. Empty of rows from
    before it was kept.
    """
    sentinel_s: list[float] = field(default_factory=list)
    """Times of a small fixed program, before and after each slice of samples: the machine's speed."""
    load: float | None = None
    """Share of the processors that other processes used meanwhile. Null where the system does not report it.
    """
    steal: float | None = None
    """Share of the processors' time that the hypervisor gave to other machines. Null where the system does
    not report it.
    """
    clocks: dict[str, ClockReading] = field(default_factory=dict)
    """Clocks that the point asked for: ``cpu``, ``gpu``, ``memory``, each as it was asked for, applied and
    observed. Empty where it asked for none.
    """
    clocks_note: str | None = None
    """Where one was not what was asked for, or was not put back as it had been found. Null otherwise."""
    clock_low_hz: float | None = None
    """The lowest, mean and highest clock frequency of the processors that the program could use, read before,
    after and once a second during each slice. Null on GPUs, and where the system does not report them.
    """
    clock_mean_hz: float | None = None
    """The lowest, mean and highest clock frequency of the processors that the program could use, read before,
    after and once a second during each slice. Null on GPUs, and where the system does not report them.
    """
    clock_high_hz: float | None = None
    """The lowest, mean and highest clock frequency of the processors that the program could use, read before,
    after and once a second during each slice. Null on GPUs, and where the system does not report them.
    """
    gpu_clock_mean_hz: float | None = None
    """The same mean of an NVIDIA GPU, and of its memory. Null of programs on processors, and without NVML."""
    gpu_memory_clock_mean_hz: float | None = None
    """The same mean of an NVIDIA GPU, and of its memory. Null of programs on processors, and without NVML."""
    addresses: str | None = None
    """Where code and data of the timed process were: ``fixed``, as in other sweeps, or ``random``, where some
    kernels take a tenth longer than in another sweep. Null on boards, where the system does not tell,
    and in rows from before it was kept.
    """
    noisy: bool | None = None
    """Whether the measurement was disturbed, also when it was repeated."""
    noisy_reason: str | None = None
    """What disturbed it. Null where it is not noisy."""
    other_round: OtherRound | None = None
    """What is left of the other of two measurements. Null for a point that was measured once."""
    peak_memory_bytes: int | None = None
    """Peak of what the program holds while it runs, weights included, in a process of its own; without pages
    of files, and without what is done once for all programs, such as importing modules. Null where
    ``memory_note`` says why, and in rows of schema 1 and 2.
    """
    loading_memory_bytes: int | None = None
    """The same while it is loaded, which may need copies of weights. Null where ``peak_memory_bytes`` is."""
    memory_note: str | None = None
    """Why the peaks are null, or may differ between equal runs. Null where neither is so."""
    resident_bytes: int | None = None
    """Memory that the timed process added, at its peak: with pages of files, and with what the allocator
    kept, so that equal runs differ. Rows of schema 1 and 2 name it ``peak_memory_bytes``. Null where the
    system does not report it.
    """
    page_faults: float | None = None
    """Page faults of an inference or training step that read nothing from a disk, as when memory is written
    for the first time since the system gave it: the mean over the samples. Null where ``cpu_s`` is, and where
    other processes compute.
    """
    temperature_c: float | None = None
    """The highest temperature of the machine's thermal zones, or of its GPU, read before, after and once a
    second during each slice. Null where nothing tells it.
    """
    throttled: bool | None = None
    """Whether clocks were held back meanwhile: by counters of throttling, cooling devices other than fans, a
    limit of a frequency that fell, a board's firmware, or the reasons that a GPU gives. Null where nothing
    tells it.
    """
    throttled_reason: str | None = None
    """The first of these that told it. Null where it was not throttled."""
    energy_j: float | None = None
    """Energy of an inference or training step: ``power_w`` times the mean time of samples. Null where
    ``power_w`` is.
    """
    power_w: float | None = None
    """Mean power while samples were taken or, where the study asks for ``power``, while the program ran in a
    loop of its own: of the processors' packages with their memory, of a Jetson's module, or of a GPU, with
    what they use when idle. Null where there is no sensor that may be read, or ``power_note`` says why.
    """
    power_rails_w: dict[str, float] = field(default_factory=dict)
    """The same by rail, of which some may be parts of others. Empty where the sensor has one alone; in W."""
    idle_power_w: float | None = None
    """Mean power before that loop, with the program loaded and nothing running: ``power_w`` contains it. Null
    where there was no loop, or more than a tenth of its readings is missing.
    """
    power_sensor: str | None = None
    """What was read: ``rapl``, ``ina3221`` or ``nvml``. Null where there is no sensor that may be read."""
    power_readings: int | None = None
    """Readings behind ``power_w``, with those that are missing. Null where it is."""
    power_missing: int | None = None
    """How many of them could not be taken, whose time is in the next ones. Null where ``power_w`` is."""
    power_drift: float | None = None
    """By what share the last third of the readings had more power than the first. Null where ``power_w`` is,
    or with fewer than three readings.
    """
    power_note: str | None = None
    """Why ``power_w`` is null. Null where it is not, or without a sensor in a study that does not ask for
    ``power``.
    """
    layers: list[Layer] = field(default_factory=list)
    """The operators in the order in which the build runs them, with their times. Rows written before
    operators were told apart have the convolutions first, and of others a name and a time alone.
    """
    edges: list[Edge] = field(default_factory=list)
    """Which convolution reads the output of which: where a layout may have to change. Empty where the
    compiler does not report it.
    """
    coverage: Coverage | None = None
    """The share that the requested algorithm computes. Null for a compiler with its own kernels."""
    tuning: TuningSummary | None = None
    """The search for schedules. Null where the compiler does not search."""
    expected_speedup: float | None = None
    """Speed-up expected from the compression alone: 1 / (1 - ratio) for pruning, times 32 / bits for types;
    of a path through a flexible network the dense network's multiply-adds over its own, times 32 / bits. Null
    where these are unknown, as in older rows of paths.
    """
    error: float | None = None
    """Largest difference between the build's outputs and its network's, as a share of the network's largest
    output. Null for training, whose check looks at the loss and the weights.
    """
    accuracy: float | None = None
    """Share of all test images that the network classifies correctly in its framework; for training, before
    the steps that were timed. Null where it is untrained or images have no labels.
    """
    validation_accuracy: float | None = None
    """The same share of the validation images, on which levels are chosen. Null where it is untrained or
    images have no labels.
    """
    test_images: int | None = None
    """Test images behind ``accuracy``. Null where ``accuracy`` is."""
    compiled_accuracy: CompiledAccuracy | None = None
    """Accuracy of the build, on a bounded number of test images. Null where ``accuracy`` is, and for
    training.
    """
    note: str | None = None
    """A remark on the network or on how it is trained. Null where there is none."""
    reached: CompressionResult = field(default_factory=CompressionResult)
    """What the compression reached. Empty for the dense network."""
    parameters: int | None = None
    """Parameters of the network."""
    nonzeros: int | None = None
    """Parameters that are not zero."""
    macs: int | None = None
    """Multiply-adds of its convolutions and linear layers, for one image."""
    effective_macs: int | None = None
    """Those of them whose weight is not zero."""
    model_bytes: int | None = None
    """Size of the parameters, in their types."""
    csr_bytes: int | None = None
    """The same with the weights of convolutions in compressed sparse rows."""
    library_bytes: int | None = None
    """Size of the compiled library. Null where the compiler makes none."""
    packed_bytes: int | None = None
    """Size of the weights as the build stores them: packed for their algorithms, with indices and unused
    places. Null for a runtime with its own kernels, and in rows older than this field.
    """
    seconds: Seconds = field(default_factory=Seconds)
    """Time that each step worked for this point. Rows of schema 1 count the waits too."""
    waited: Seconds = field(default_factory=Seconds)
    """Time that each step stood still: stopped while others were measured, or waiting for its turn."""
    cached: Seconds = field(default_factory=Seconds)
    """Time that steps whose artifacts were in the cache took when these were made, for other points."""
    artifacts: Artifacts = field(default_factory=Artifacts)
    """Keys of the artifacts of its steps, in the cache."""
    measure: Measure = field(default_factory=Measure)
    """The study's settings for measuring."""
    device: Device = field(default_factory=Device)
    """The device in full. Empty where the point ended before measuring."""
    environment: Environment = field(default_factory=Environment)
    """Versions and host."""
    sources: dict[str, str] = field(default_factory=dict)
    """Digest of the code of each axis's part with what it imports, by axis. Empty in rows older than it."""
    imported: ImportSource | None = None
    """The file that it was imported from. Null for a row that was measured here."""
    started: str | None = None
    """When its measurement began, or the last steps of a point that ended before; ISO 8601 in UTC. In rows of
    schema 1, when the sweep planned the point.
    """
    schema: int = SCHEMA
    """Version of this list of fields."""

    @classmethod
    def parse(cls, line: str | bytes) -> Row:
        """Return the row in one line of a results file; unknown keys are ignored.

        Raises
        ------
        Damaged
            If the line is not a row, or a field has a wrong type.
        """
        kinds = _kinds()
        content = line_reader().content(line if isinstance(line, bytes) else line.encode())
        given: dict[str, Any] = {
            key: value
            for key, value in content.items()
            if key in kinds and (value is not None or kinds[key] is object)
        }
        return cls(**given)

    @property
    def timed(self) -> bool:
        """Whether its times are a result."""
        return self.status == "ok" and bool(self.latency_s)

    @property
    def settled(self) -> bool:
        """Whether it is not to be measured again: its times are stable, or it was measured twice.

        One whose measurement was interrupted is to be completed.
        """
        return self.bound != INTERRUPTION and (self.status != UNSTABLE or self.other_round is not None)

    def stands(self, key: str, retry: Collection[str] = ()) -> bool:
        """Return whether a sweep keeps it: it was made with the key that its point has now, and is settled.

        Parameters
        ----------
        retry : collection of str
            Statuses whose rows are run again.
        """
        return self.settled and self.key == key and self.status not in retry

    def line(self) -> str:
        """Return the row as one line of JSON, newline included."""
        return _as_json(asdict(self)) + "\n"

    def short_line(self) -> str:
        """Return the row as :meth:`line` does, without the fields that are null or empty."""
        fields = {name: value for name, value in vars(self).items() if value or value == 0 or name == "key"}
        return _as_json(fields) + "\n"


@functools.cache
def _kinds() -> dict[str, type]:
    """Return ``dict`` or ``list`` for each field of a row that holds one, ``object`` for the others."""
    kinds: dict[str, type] = {}
    for name, hint in typing.get_type_hints(Row).items():
        optional = typing.get_origin(hint) is types.UnionType
        choices = typing.get_args(hint) if optional else (hint,)
        plain = [dict if typing.is_typeddict(each) else typing.get_origin(each) for each in choices]
        kinds[name] = next((kind for kind in plain if kind in (dict, list)), object)
    return kinds


@functools.cache
def line_reader() -> LineReader:
    """Return what reads the lines of results files."""
    return LineReader(Row, STATUSES)


def read_rows(folder: Path, ids: Collection[str] | None = None) -> Iterator[Row]:
    """Yield a folder's current rows: the last one of each id, in the order of the file.

    An incomplete last line, from a sweep that was killed while writing it, is ignored.  A line that is
    no row is left out, so that an earlier row of its id is the current one; those come last.  One warning,
    :class:`DamagedRows`, tells it.

    Parameters
    ----------
    ids : collection of str, optional
        The rows to read; by default all.

    Raises
    ------
    InputError
        If the folder holds no results, or a packed file is damaged or too large.
    """
    return read_current(folder, Row.parse, ids=ids)


def read_current(
    folder: Path,
    parse: Callable[[bytes], ParsedT],
    damaged: dict[int, str] | None = None,
    ids: Collection[str] | None = None,
) -> Iterator[ParsedT]:
    """Yield what ``parse`` makes of the lines of a folder's current rows, as :func:`read_rows`.

    Parameters
    ----------
    parse : callable
        Takes a line, and raises :class:`dlas.sweep.rows.lines.Damaged` if it is no row.
    damaged : dict, optional
        Gets what is wrong with each damaged line, by its number.
    ids : collection of str, optional
        As for :func:`read_rows`.
    """
    path = results_file(folder)
    damaged = {} if damaged is None else damaged
    # Only the end of the file tells which rows are the last ones, and to read it twice needs no memory.
    wanted = None if ids is None else {row_id.encode("utf-8", "replace") for row_id in ids}
    last: dict[bytes, int] = {}
    before: dict[int, int] = {}
    for number, line in enumerate(complete_lines(path), 1):
        try:
            row_id = _id_of(line)
        except Damaged as error:
            damaged[number] = str(error)
            continue
        if wanted is not None and row_id not in wanted:
            continue
        if row_id in last:
            before[number] = last[row_id]
        last[row_id] = number
    current = set(last.values())
    del last
    lost: dict[int, int] = {}
    for number, line in enumerate(complete_lines(path), 1):
        if number not in current:
            continue
        try:
            row = parse(line)
        except Damaged as error:
            damaged[number] = str(error)
            earlier = number
            while earlier := before.get(earlier, 0):
                lost[earlier] = number
        else:
            yield row
    if lost:
        yield from _earlier(path, parse, lost, damaged)
    if damaged:
        warnings.warn(_told(path, damaged), DamagedRows, stacklevel=2)


def _earlier(
    path: Path, parse: Callable[[bytes], ParsedT], lost: Mapping[int, int], damaged: dict[int, str]
) -> Iterator[ParsedT]:
    """Yield the last row, by number of line in ``lost``, of each damaged line there, and note others."""
    found: dict[int, ParsedT] = {}
    for number, line in enumerate(complete_lines(path), 1):
        if number in lost:
            try:
                found[lost[number]] = parse(line)
            except Damaged as error:
                damaged[number] = str(error)
    yield from found.values()


def _id_of(line: bytes) -> bytes:
    leading = LEADING_ID.match(line)
    return leading.group(1) if leading else str(line_reader().line(line).id).encode("utf-8", "replace")


def _told(path: Path, damaged: Mapping[int, str]) -> str:
    """Return which lines of a file are no rows, and what is wrong with the first of them."""
    numbers = sorted(damaged)
    said = shortened(damaged[numbers[0]])
    if len(numbers) == 1:
        return f"{path}, line {numbers[0]}: {said}; this row is left out"
    lines = listed([f"{number}" for number in numbers], 10)
    return f"{path}, line {numbers[0]}: {said}; {len(numbers):,} rows are left out (lines {lines})"


class Results:
    """The only writer of a folder's rows.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.

    Raises
    ------
    InputError
        If another sweep is writing to the folder, its rows are packed, or it cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        check_appendable(folder)
        make_folder(folder, "results folder")
        self.folder = folder
        try:
            self._journal = Journal(folder / FILE)
        except FileInUse:
            raise InputError(f"another sweep is writing to {str(folder)!r}; give another `out=`") from None
        self.existing: dict[str, tuple[str, str | None]] = {}
        for row in read_rows(folder):
            self._note(row)

    def append(self, row: Row) -> None:
        """Write a row completely, so that it survives a crash, or not at all.

        Raises
        ------
        OSError
            If the disk is full; the file is left as it was.
        """
        self._journal.append(row.line())
        self._note(row)

    def _note(self, row: Row) -> None:
        """Note a row's status, and its key unless the point is to be measured again."""
        self.existing[row.id] = (row.status, row.key if row.settled else None)

    def close(self) -> None:
        """Release the folder."""
        self._journal.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
