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
    """Accuracy of the build on the images that it was checked with."""

    accuracy: float
    """Share of the images that the build classifies correctly."""
    low: float
    """Lower end of its Wilson score interval of level 0.95."""
    high: float
    """Upper end of that interval."""
    images: int
    """Images that the build classified."""
    agreement: float
    """Share of these images that the build classifies as its network does, right or wrong."""
    agreement_low: float
    """Ends of its Wilson score interval of level 0.95."""
    agreement_high: float
    """Ends of its Wilson score interval of level 0.95."""
    difference: float
    """Its accuracy less that of its network on the same images."""
    difference_low: float
    """Ends of the interval of level 0.95 of that paired difference (Bonett and Price, 2012)."""
    difference_high: float
    """Ends of the interval of level 0.95 of that paired difference (Bonett and Price, 2012)."""


class CurveStep(TypedDict, total=False):
    """A milder network trained before the one measured, accuracies as fractions."""

    level: float | None
    """Requested share to prune; 0 is the dense network."""
    ratio: float | None
    """Share of the convolutions' weights that is zero or gone."""
    accuracy_before: float | None
    """On test images, before the fine-tuning of this step. Null without labels."""
    validation_accuracy_before: float | None
    """On validation images, before the fine-tuning of this step. Null without labels."""
    accuracy: float | None
    """On test images. Null without labels."""
    validation_accuracy: float | None
    """On validation images. Null without labels."""
    epochs: int | None
    """Epochs of fine-tuning."""
    seconds: float | None
    """Time for pruning and fine-tuning."""


class CompressionResult(TypedDict, total=False):
    """What the compression reached; only quantities that the technique has."""

    ratio: float
    """Share of the convolutions' weights that is zero or gone."""
    bits: int
    """Width of a value; in bit."""
    level: float
    """Share to prune that was requested, or that the search for the elbow chose."""
    units: float
    """Share pruned of what the technique prunes: weights, channels or blocks."""
    layers: dict[str, float]
    """``ratio`` by layer."""
    curve: list[CurveStep]
    """The milder networks trained before this one, the dense one first."""
    path: str
    """Path through a flexible network: 1 where its phase is the shallow one."""
    stage: str
    """The last training of a flexible network: base or fine_tuned."""
    kept: list[str]
    """Paths that this training was on."""
    extra_parameters: int
    """Parameters of all its shallow phases."""
    training_s: float
    """Time of its trainings."""
    phases: list[str]
    """Names of its phases, in a row of path all."""
    paths: dict[str, dict[str, float]]
    """Accuracies and multiply-adds of each path, in a row of path all."""


class Coverage(TypedDict, total=False):
    """How much of the network the requested algorithm computes; it may decline convolutions."""

    convolutions: float
    """Share of the convolutions."""
    macs: float
    """Share of their multiply-adds."""
    integers: float
    """Share of their multiply-adds in integers, where the network is quantised; the rest is in float32."""


class TuningSummary(TypedDict, total=False):
    """A search for schedules; its curves are in ``tuning/ID.json``."""

    trials: int
    """Number of trials."""
    valid: int
    """Trials that compiled and computed the right result."""
    seconds: float
    """Time that the trials took when they ran, which may have been for another row."""


class OtherRound(TypedDict, total=False):
    """A measurement of the point that was not kept: the point was unstable and measured again."""

    started: str
    """When it began, ISO 8601 in UTC."""
    latency_s: float | None
    """Median of its samples. Null where it failed."""
    samples: int
    """Number of its samples."""
    reason: str | None
    """What made it unstable, or why it failed. Null where the kept one is as stable."""


class Seconds(TypedDict, total=False):
    """Times by step; only of steps that ran, or whose artifact was in the cache."""

    network: float
    """Training, compressing and saving the network; in s."""
    tune: float
    """Searching for schedules; in s."""
    kernels: float
    """Telling the kernels of a simulated device's program; in s."""
    build: float
    """Compiling; in s."""
    memory: float
    """Measuring its memory; in s."""
    check: float
    """Comparing the build with the network; in s."""
    count: float
    """Counting its instructions, where the study asks for that; in s."""
    measure: float
    """Loading the build and timing it; in s."""


class Artifacts(TypedDict, total=False):
    """Keys of the artifacts of the point's steps, in the cache."""

    network: str
    """Of the network."""
    tuning: str
    """Of the tuning."""
    build: str
    """Of the build."""
    kernels: str
    """Of the kernels of a program that was only predicted."""


class Measure(TypedDict, total=False):
    """The study's ``[measure]``: how long and how often to measure."""

    repeats: int
    """Samples to take."""
    seconds: float
    """At most this long of taking samples, repeated slices included; first run and warm-up come before."""
    minimum: int
    """Samples to take even where ``seconds`` has passed."""
    sample_seconds: float
    """Shortest sample: a fast program is called several times a sample."""
    slices: int
    """Turns that the samples are spread over."""
    layer_repeats: int
    """Runs whose layers are timed; 0 for none. Rows without it: 20."""
    callgrind: bool
    """Whether valgrind counted instructions. Rows without it: it did not."""
    power: bool
    """Whether power was measured in a loop. Rows without it: it was not."""


class Device(TypedDict, total=False):
    """The device in full. A profile may add facts, such as ``board``."""

    name: str
    """The hardware profile's name."""
    title: str
    """What the profile calls the device."""
    threads: int
    """Threads used."""
    cpu: str | None
    """Model of the processor. Null where the system does not report it."""
    gpu: str
    """Model of the GPU, where the device is one."""
    gpu_arch: str
    """Its architecture, such as ``sm_90``, and the version of CUDA that its driver runs."""
    gpu_cuda: str
    """Its architecture, such as ``sm_90``, and the version of CUDA that its driver runs."""
    gpu_processors: int
    """Its streaming multiprocessors."""
    gpu_clock_hz: float
    """The highest clock frequencies of the GPU and of its memory."""
    gpu_memory_clock_hz: float
    """The highest clock frequencies of the GPU and of its memory."""
    gpu_l2_bytes: int
    """Sizes of its second-level cache and of its memory."""
    gpu_memory_bytes: int
    """Sizes of its second-level cache and of its memory."""
    gpu_memory_bus_bits: int
    """Width of its memory's bus."""
    vendor: str | None
    """The processor's identification. Null where the system does not report it."""
    family: str | None
    """The processor's identification. Null where the system does not report it."""
    model: str | None
    """The processor's identification. Null where the system does not report it."""
    stepping: str | None
    """The processor's identification. Null where the system does not report it."""
    architecture: str
    """Such as ``x86_64``."""
    physical_cores: int
    """Cores."""
    logical_cores: int
    """Logical processors."""
    allowed_cores: int
    """Cores that the process may use."""
    quota_cores: float | None
    """Cores' worth of time that a container may use. Null where there is no limit."""
    l1d_bytes: int
    """All first-level data caches of the machine together, by which it is known."""
    l1i_bytes: int
    """All first-level instruction caches of the machine together, by which it is known."""
    l2_bytes: int
    """All second-level caches of the machine together, by which it is known."""
    l3_bytes: int
    """All third-level caches of the machine together, by which it is known."""
    l1d_core_bytes: float
    """The same for each core: of a cache that is shared, the share. Left out where cores are unknown."""
    l1i_core_bytes: float
    """The same for each core: of a cache that is shared, the share. Left out where cores are unknown."""
    l2_core_bytes: float
    """The same for each core: of a cache that is shared, the share. Left out where cores are unknown."""
    l3_core_bytes: float
    """The same for each core: of a cache that is shared, the share. Left out where cores are unknown."""
    extensions: list[str]
    """The processor's vector instructions."""
    memory_bytes: int
    """Main memory."""
    machine: str
    """Name and fingerprint of the machine, in imported rows: they stand for the facts that make one."""
    machine_id: str
    """Name and fingerprint of the machine, in imported rows: they stand for the facts that make one."""
    instance: str
    """Which one of several machines alike it is: the key of a board's server. Left out of rows of this
    machine.
    """
    kernel: str | None
    """Release of the operating system's kernel."""
    governor: str | None
    """Governor of the clock frequency. Null where the system does not report it."""
    clock_min_hz: float | None
    """Range of the clock frequency, and its limit. Null where the system does not report it."""
    clock_max_hz: float | None
    """Range of the clock frequency, and its limit. Null where the system does not report it."""
    clock_limit_hz: float | None
    """Range of the clock frequency, and its limit. Null where the system does not report it."""
    boost: bool | None
    """Whether the clock may exceed its nominal frequency. Null where the system does not report it."""
    hypervisor: bool | None
    """Whether it is a virtual machine. Null where the system does not report it."""
    simulated: bool
    """True of a device that does not exist: a law told its times. Left out of all others."""
    cpu_hz: float
    """Clocks of the processors, the GPU and the memory at which the point ran, where it asked for them."""
    gpu_hz: float
    """Clocks of the processors, the GPU and the memory at which the point ran, where it asked for them."""
    memory_hz: float
    """Clocks of the processors, the GPU and the memory at which the point ran, where it asked for them."""


class ImportSource(TypedDict, total=False):
    """The file that a row was imported from."""

    file: str
    """Its name."""
    sha256: str
    """Hash of its content."""
    line: int
    """Line of a CSV file that the row is on; left out for Parquet."""
    row: int
    """Number of the row in a Parquet file, from 1; left out for CSV."""
    derived: dict[str, Any]
    """Columns of the table of rows that are derived from what the file does not hold: the interval and the
    number of samples, the drift, and others.
    """
    features: dict[str, float]
    """What the file tells of the point for predictors: the columns ``feature.<name>``, by their names without
    ``feature.``. Left out where there are none.
    """


class Code(TypedDict, total=False):
    """The version of DLAS."""

    version: str | None
    """Of the installed package."""
    commit: str | None
    """Of the checkout. Null outside a checkout."""
    dirty: bool | None
    """Whether the checkout had uncommitted changes. Null outside a checkout."""


class Host(TypedDict, total=False):
    """The host."""

    name: str
    """Host name; containers get a new one at each start."""
    system: str
    """Such as ``Linux``."""
    architecture: str
    """Such as ``x86_64``."""


class Environment(TypedDict, total=False):
    """Software and host that produced the row."""

    python: str
    """Version of Python."""
    versions: dict[str, str | None]
    """Versions of the libraries that can affect results. Null for one that is not installed."""
    code: Code
    """Version of DLAS."""
    host: Host
    """The host."""
