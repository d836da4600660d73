"""The mappings that a row holds: their keys, units, and the meaning of null.

Rows written by older versions lack some keys, so that none is required: readers of
a row use ``get``.
"""

from __future__ import annotations

from typing import Any, TypedDict

from dlas.stack import Edge as Edge
from dlas.stack import Layer as Layer
from dlas.stack import Types as Types

PartContent = dict[str, Any]
"""A part as a study asked for it: ``name`` and its options, or ``name`` and ``chain``."""


class CompiledAccuracy(TypedDict, total=False):
    """Accuracy of the build on the images that it was checked with.

    Attributes
    ----------
    accuracy : float
        Share of the images that the build classifies correctly.
    low : float
        Lower end of its Wilson score interval of level 0.95.
    high : float
        Upper end of that interval.
    images : int
        Images that the build classified.
    agreement : float
        Share of these images that the build classifies as its network does, right or wrong.
    agreement_low, agreement_high : float
        Ends of its Wilson score interval of level 0.95.
    difference : float
        Its accuracy less that of its network on the same images.
    difference_low, difference_high : float
        Ends of the interval of level 0.95 of that paired difference (Bonett and Price, 2012).
    """

    accuracy: float
    low: float
    high: float
    images: int
    agreement: float
    agreement_low: float
    agreement_high: float
    difference: float
    difference_low: float
    difference_high: float


class CurveStep(TypedDict, total=False):
    """A milder network trained before the one measured, accuracies as fractions.

    Attributes
    ----------
    level : float
        Requested share to prune; 0 is the dense network.
    ratio : float
        Share of the convolutions' weights that is zero or gone.
    accuracy_before : float
        On test images, before the fine-tuning of this step. Null without labels.
    validation_accuracy_before : float
        On validation images, before the fine-tuning of this step. Null without labels.
    accuracy : float
        On test images. Null without labels.
    validation_accuracy : float
        On validation images. Null without labels.
    epochs : int
        Epochs of fine-tuning.
    seconds : float, s
        Time for pruning and fine-tuning.
    """

    level: float | None
    ratio: float | None
    accuracy_before: float | None
    validation_accuracy_before: float | None
    accuracy: float | None
    validation_accuracy: float | None
    epochs: int | None
    seconds: float | None


class CompressionResult(TypedDict, total=False):
    """What the compression reached; only quantities that the technique has.

    Attributes
    ----------
    ratio : float
        Share of the convolutions' weights that is zero or gone.
    bits : int, bit
        Width of a value.
    level : float
        Share to prune that was requested, or that the search for the elbow chose.
    units : float
        Share pruned of what the technique prunes: weights, channels or blocks.
    layers : mapping of str to float
        ``ratio`` by layer.
    curve : list of CurveStep
        The milder networks trained before this one, the dense one first.
    path : str
        Path through a flexible network: 1 where its phase is the shallow one.
    stage : str
        The last training of a flexible network: base or fine_tuned.
    kept : list of str
        Paths that this training was on.
    extra_parameters : int
        Parameters of all its shallow phases.
    training_s : float, s
        Time of its trainings.
    phases : list of str
        Names of its phases, in a row of path all.
    paths : mapping of str to mapping
        Accuracies and multiply-adds of each path, in a row of path all.
    """

    ratio: float
    bits: int
    level: float
    units: float
    layers: dict[str, float]
    curve: list[CurveStep]
    path: str
    stage: str
    kept: list[str]
    extra_parameters: int
    training_s: float
    phases: list[str]
    paths: dict[str, dict[str, float]]


class Coverage(TypedDict, total=False):
    """How much of the network the requested algorithm computes; it may decline convolutions.

    Attributes
    ----------
    convolutions : float
        Share of the convolutions.
    macs : float
        Share of their multiply-adds.
    integers : float
        Share of their multiply-adds in integers, where the network is quantised; the rest is in float32.
    """

    convolutions: float
    macs: float
    integers: float


class TuningSummary(TypedDict, total=False):
    """A search for schedules; its curves are in ``tuning/ID.json``.

    Attributes
    ----------
    trials : int
        Number of trials.
    valid : int
        Trials that compiled and computed the right result.
    seconds : float, s
        Time that the trials took when they ran, which may have been for another row.
    """

    trials: int
    valid: int
    seconds: float


class OtherRound(TypedDict, total=False):
    """A measurement of the point that was not kept: the point was unstable and measured again.

    Attributes
    ----------
    started : str
        When it began, ISO 8601 in UTC.
    latency_s : float, s
        Median of its samples. Null where it failed.
    samples : int
        Number of its samples.
    reason : str
        What made it unstable, or why it failed. Null where the kept one is as stable.
    """

    started: str
    latency_s: float | None
    samples: int
    reason: str | None


class Seconds(TypedDict, total=False):
    """Times by step; only of steps that ran, or whose artifact was in the cache.

    Attributes
    ----------
    network : float, s
        Training, compressing and saving the network.
    tune : float, s
        Searching for schedules.
    build : float, s
        Compiling.
    memory : float, s
        Measuring its memory.
    check : float, s
        Comparing the build with the network.
    measure : float, s
        Loading the build and timing it.
    """

    network: float
    tune: float
    build: float
    memory: float
    check: float
    measure: float


class Artifacts(TypedDict, total=False):
    """Keys of the artifacts of the point's steps, in the cache.

    Attributes
    ----------
    network : str
        Of the network.
    tuning : str
        Of the tuning.
    build : str
        Of the build.
    kernels : str
        Of the kernels of a program that was only predicted.
    """

    network: str
    tuning: str
    build: str
    kernels: str


class Measure(TypedDict, total=False):
    """The study's ``[measure]``: how long and how often to measure.

    Attributes
    ----------
    repeats : int
        Samples to take.
    seconds : float, s
        At most this long of taking samples, repeated slices included; first run and warm-up come before.
    minimum : int
        Samples to take even where ``seconds`` has passed.
    sample_seconds : float, s
        Shortest sample: a fast program is called several times a sample.
    slices : int
        Turns that the samples are spread over.
    layer_repeats : int
        Runs whose layers are timed; 0 for none. Rows without it: 20.
    """

    repeats: int
    seconds: float
    minimum: int
    sample_seconds: float
    slices: int
    layer_repeats: int


class Device(TypedDict, total=False):
    """The device in full. A profile may add facts, such as ``board``.

    Attributes
    ----------
    name : str
        The hardware profile's name.
    title : str
        What the profile calls the device.
    threads : int
        Threads used.
    cpu : str
        Model of the processor. Null where the system does not report it.
    gpu : str
        Model of the GPU, where the device is one.
    gpu_arch, gpu_cuda : str
        Its architecture, such as ``sm_90``, and the version of CUDA that its driver runs.
    gpu_processors : int
        Its streaming multiprocessors.
    gpu_clock_hz, gpu_memory_clock_hz : float, Hz
        The highest clock frequencies of the GPU and of its memory.
    gpu_l2_bytes, gpu_memory_bytes : int, B
        Sizes of its second-level cache and of its memory.
    gpu_memory_bus_bits : int
        Width of its memory's bus.
    vendor, family, model, stepping : str
        The processor's identification. Null where the system does not report it.
    architecture : str
        Such as ``x86_64``.
    physical_cores : int
        Cores.
    logical_cores : int
        Logical processors.
    allowed_cores : int
        Cores that the process may use.
    quota_cores : float
        Cores' worth of time that a container may use. Null where there is no limit.
    l1d_bytes, l1i_bytes, l2_bytes, l3_bytes : int, B
        Size of a cache of that level.
    extensions : list of str
        The processor's vector instructions.
    memory_bytes : int, B
        Main memory.
    machine, machine_id : str
        Name and fingerprint of the machine, in imported rows: they stand for the facts that make one.
    instance : str
        Which one of several machines alike it is: the key of a board's server. Left out of rows of this
        machine.
    kernel : str
        Release of the operating system's kernel.
    governor : str
        Governor of the clock frequency. Null where the system does not report it.
    clock_min_hz, clock_max_hz, clock_limit_hz : float, Hz
        Range of the clock frequency, and its limit. Null where the system does not report it.
    boost : bool
        Whether the clock may exceed its nominal frequency. Null where the system does not report it.
    hypervisor : bool
        Whether it is a virtual machine. Null where the system does not report it.
    """

    name: str
    title: str
    threads: int
    cpu: str | None
    gpu: str
    gpu_arch: str
    gpu_cuda: str
    gpu_processors: int
    gpu_clock_hz: float
    gpu_memory_clock_hz: float
    gpu_l2_bytes: int
    gpu_memory_bytes: int
    gpu_memory_bus_bits: int
    vendor: str | None
    family: str | None
    model: str | None
    stepping: str | None
    architecture: str
    physical_cores: int
    logical_cores: int
    allowed_cores: int
    quota_cores: float | None
    l1d_bytes: int
    l1i_bytes: int
    l2_bytes: int
    l3_bytes: int
    extensions: list[str]
    memory_bytes: int
    machine: str
    machine_id: str
    instance: str
    kernel: str | None
    governor: str | None
    clock_min_hz: float | None
    clock_max_hz: float | None
    clock_limit_hz: float | None
    boost: bool | None
    hypervisor: bool | None


class ImportSource(TypedDict, total=False):
    """The file that a row was imported from.

    Attributes
    ----------
    file : str
        Its name.
    sha256 : str
        Hash of its content.
    line : int
        Line of a CSV file that the row is on; left out for Parquet.
    row : int
        Number of the row in a Parquet file, from 1; left out for CSV.
    derived : mapping
        Columns of the table of rows that are derived from what the file does not hold: the interval
        and the number of samples, the drift, and others.
    """

    file: str
    sha256: str
    line: int
    row: int
    derived: dict[str, Any]


class Code(TypedDict, total=False):
    """The version of DLAS.

    Attributes
    ----------
    version : str
        Of the installed package.
    commit : str
        Of the checkout. Null outside a checkout.
    dirty : bool
        Whether the checkout had uncommitted changes. Null outside a checkout.
    """

    version: str | None
    commit: str | None
    dirty: bool | None


class Host(TypedDict, total=False):
    """The host.

    Attributes
    ----------
    name : str
        Host name; containers get a new one at each start.
    system : str
        Such as ``Linux``.
    architecture : str
        Such as ``x86_64``.
    """

    name: str
    system: str
    architecture: str


class Environment(TypedDict, total=False):
    """Software and host that produced the row.

    Attributes
    ----------
    python : str
        Version of Python.
    versions : mapping of str to str
        Versions of the libraries that can affect results. Null for one that is not installed.
    code : Code
        Version of DLAS.
    host : Host
        The host.
    """

    python: str
    versions: dict[str, str | None]
    code: Code
    host: Host
