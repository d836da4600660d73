"""The columns of the table of rows: their names, their types and their order."""

from __future__ import annotations

import typing

from dlas.stack import INFERENCE, PART_AXES
from dlas.sweep.rows.results import Row

AXES = (*PART_AXES, "batch", "task", "seed")
"""Columns that identify a point."""
UNSAID = {"seed": "0", "task": INFERENCE}
"""Values that go without saying where all rows have them."""
MACHINE = "machine"
MACHINE_ID = "machine_id"
"""Column of a machine's fingerprint, see :mod:`dlas.sweep.rows.machines`."""
INSTANCE = "instance"
"""Column that tells machines alike apart, such as boards of one model; missing where there is one alone."""
SAMPLES = "latency_samples_s"
"""Column of the raw samples: an ndarray of seconds in every cell, empty where nothing was measured."""
STEPS = ("network", "tune", "build", "memory", "check", "count", "measure")
CLOCKS = (
    *("clock_low_hz", "clock_mean_hz", "clock_high_hz"),
    *("gpu_clock_mean_hz", "gpu_memory_clock_mean_hz"),
)
REACHED = ("level", "units", "ratio", "bits")
"""What a compression reached: its level, the shares of units and of weights pruned, the bits of a value."""
FINE_TUNING = "fine_tuning_s"
"""Column of the seconds spent on pruning and fine-tuning, all milestones included."""
SECONDS = tuple(f"{step}_s" for step in STEPS)
WAITS = tuple(f"{step}_waited_s" for step in STEPS)
CACHED = tuple(f"{step}_cached_s" for step in STEPS)
DURATIONS = (*SECONDS, *WAITS, *CACHED)
"""Columns of the seconds that steps worked, stood still, and took for artifacts that were in the cache."""
AGREEMENTS = ("agreement", "agreement_low", "agreement_high")
"""Columns of the share of images to which a build and its network give one class."""
DIFFERENCES = ("accuracy_difference", "accuracy_difference_low", "accuracy_difference_high")
"""Columns of a build's accuracy less its network's on the same images: from -1 to 1."""
ACCURACIES = (
    "accuracy",
    "validation_accuracy",
    "compiled_accuracy",
    "compiled_accuracy_low",
    "compiled_accuracy_high",
    *AGREEMENTS,
)
DERIVED = (
    *("latency_low_s", "latency_high_s", "latency_min_s", "samples"),
    *("drift", "image_height", FINE_TUNING, "processor"),
)
"""Columns that follow from the rest of a row; an imported row keeps those that its table says."""
LATENCY = (
    "latency_s",
    "latency_low_s",
    "latency_high_s",
    "latency_min_s",
    "samples",
    "calls_per_sample",
    "bound",
    "first_run_s",
    "cpu_s",
)
POWER = (
    "energy_j",
    "power_w",
    "idle_power_w",
    "power_sensor",
    "power_readings",
    "power_missing",
    "power_drift",
)
OF_TIME = (*LATENCY, "energy_j")
"""Columns that follow from how long the program took."""
COUNTERS = ("instructions", "cycles", "cache_misses", "counter", "count_note")
DISTURBANCES = ("noisy", "noisy_reason", "load", "steal", "drift")
HEAT = ("temperature_c", "throttled", "throttled_reason")
COUNTS = ("image_height", "parameters", "nonzeros", "macs", "effective_macs")
SIZES = ("model_bytes", "csr_bytes", "packed_bytes", "library_bytes")
MEMORY = ("peak_memory_bytes", "loading_memory_bytes", "resident_bytes", "page_faults", "memory_note")
PROVENANCE = ("cpu", "threads", "processor", MACHINE, MACHINE_ID, INSTANCE, "host", "started", "folder")
FEATURE = "feature."
"""Beginning of the columns of features that a table from elsewhere tells of its points."""
ORDER = (
    *("id", "study", *AXES, "status", "reason", "step"),
    *LATENCY,
    *COUNTERS,
    *DISTURBANCES,
    *CLOCKS,
    *HEAT,
    *("error", *ACCURACIES, *DIFFERENCES, "test_images", "note"),
    *COUNTS,
    *SIZES,
    *MEMORY,
    *POWER,
    *("power_note", "expected_speedup", *REACHED, FINE_TUNING, "coverage", "trials", "search_s"),
    *DURATIONS,
    *PROVENANCE,
    *(name for axis in PART_AXES for name in (f"{axis}_name", f"{axis}.")),
    FEATURE,
    SAMPLES,
)
"""Columns from left to right; one that ends in a dot stands for an axis's options, or for features."""


def _fields(*kinds: object) -> tuple[str, ...]:
    """Return the columns that a row has as fields of these types."""
    return tuple(name for name, kind in typing.get_type_hints(Row).items() if kind in kinds and name in ORDER)


TEXTS = _fields(str | None)
TRUTHS = _fields(bool | None)
INTEGERS = _fields(int, int | None)
FLOATS = _fields(float | None)
WHOLE = (*INTEGERS, "samples", "threads", "trials", "image_height")
NUMBERS = (
    *(*FLOATS, *ACCURACIES, *DIFFERENCES, *DURATIONS, *REACHED),
    *(FINE_TUNING, "coverage", "drift", "search_s"),
)
