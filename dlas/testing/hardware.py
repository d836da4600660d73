"""The contract of hardware: it describes itself for a row, and times programs in seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.stack import (
    Hardware,
    Images,
    Layer,
    MeasureSettings,
    Program,
    SimulatedHardware,
    Target,
    TrainingStep,
    Unsupported,
)
from dlas.testing.faults import checking
from dlas.testing.networks import SHAPE, random_images

SECONDS = 5e-3
"""Duration of a run of :class:`Sleeper`."""
SETTINGS = MeasureSettings(repeats=4, seconds=10, minimum=2, sample_seconds=1e-4, slices=2)


class Sleeper(Program):
    """Sleeps for a known time."""

    def bind(self, images: Images) -> Callable[[], None]:
        """Return a function that sleeps."""
        return lambda: time.sleep(SECONDS)

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return zeros."""
        return np.zeros((len(images), 1), np.float32)


class SleepingStep(TrainingStep):
    """Sleeps for a known time, and has no weights."""

    def step(self) -> float:
        """Sleep, and return a loss."""
        time.sleep(SECONDS)
        return 0.0

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return no weights."""
        return {}


def check_hardware(hardware: Hardware, program: Program | None = None, seconds: float = SECONDS) -> None:
    """Check the contract of a device.

    - It has a name for its lock, and its description and target are JSON-able and the
      same every time.
    - It measures: positive samples in seconds, a first run, and it waits for its turn
      before it uses the device; or it gives a reason why it cannot be used, and measuring
      raises that.  A simulated one tells positive times of kernels, and says that it is one.
    - It times training steps in the same way, or refuses them.

    Parameters
    ----------
    program : Program, optional
        The program to run; by default one that sleeps.
    seconds : float
        Shortest duration of one run.

    Raises
    ------
    AssertionError
    """
    with checking(hardware):
        assert isinstance(hardware.device, str) and hardware.device, f"its lock is called {hardware.device!r}"
        assert isinstance(hardware.local, bool), f"local is {hardware.local!r}"
        for name, method in (("description", hardware.describe), ("target", lambda: _target(hardware))):
            first, second = (json.dumps(method(), sort_keys=True, allow_nan=False) for _ in range(2))
            assert first == second, f"its {name} is {first}, then {second}"
        reason = hardware.unsupported()
        if isinstance(hardware, SimulatedHardware):
            _check_simulation(hardware)
        elif reason is None:
            images = random_images(1, SHAPE)
            _check_samples(
                lambda turn: hardware.measure(program or Sleeper(), images, SETTINGS, turn), seconds
            )
            _check_training(hardware)
        else:
            assert isinstance(reason, str) and reason.strip(), "it cannot be used and does not say why"
            _check_refusal(hardware, program or Sleeper())


def _target(hardware: Hardware) -> dict[str, object]:
    """Return the target as a mapping."""
    target = hardware.target()
    assert isinstance(target, Target) and target.kind, f"{target!r} is no target"
    assert target.threads >= 1, f"its target has {target.threads} threads"
    return asdict(target)


def _check_training(hardware: Hardware) -> None:
    """Check the times of training steps, where the device trains."""
    with suppress(Unsupported):
        _check_samples(lambda turn: hardware.measure_training(SleepingStep(), SETTINGS, turn), SECONDS)


def _check_samples(measure: Callable[[Callable[[], None]], Mapping[str, Any]], seconds: float) -> None:
    """Check the result of a measurement.

    Parameters
    ----------
    measure : callable
        Takes what waits for a turn.
    seconds : float
        Shortest duration of one run.
    """
    turns: list[float] = []
    measured = measure(lambda: turns.append(time.monotonic()))
    assert turns, "it uses the device without asking for its turn"
    samples = measured.get("latency_s") or []
    enough = SETTINGS.minimum <= len(samples) <= SETTINGS.repeats
    assert enough, f"it takes {len(samples)} samples, not {SETTINGS.minimum} to {SETTINGS.repeats}"
    for sample in [*samples, measured.get("first_run_s")]:
        positive = isinstance(sample, float) and 0 < sample < np.inf
        assert positive, f"{sample!r} is no time in seconds"
        assert seconds * 0.9 <= sample, f"{sample:.2g} s for a run that takes {seconds:.2g} s"
        assert sample <= seconds + 10, f"{sample:.2g} s for a run of {seconds:.2g} s: times are in seconds"
    json.dumps(measured, allow_nan=False)


def _check_simulation(hardware: SimulatedHardware) -> None:
    """Check that a simulated device tells the times of kernels, is marked, and refuses to measure."""
    assert hardware.describe().get("simulated") is True, "its description does not say that it is simulated"
    kernel: Layer = {"name": "sum", "operator": "Add", "inputs": [[1, 8], [1, 8]], "output": [1, 8]}
    told = hardware.simulate([kernel, kernel], SETTINGS)
    samples = told["latency_s"]
    assert samples and all(isinstance(sample, float) and sample > 0 for sample in samples), f"{samples!r}"
    json.dumps(told, allow_nan=False)
    _check_refusal(hardware, Sleeper())


def _check_refusal(hardware: Hardware, program: Program) -> None:
    """Check that measuring on a device that cannot be used raises the reason."""
    try:
        hardware.measure(program, random_images(1, SHAPE), SETTINGS, lambda: None)
    except Unsupported:
        return
    reason = hardware.unsupported() or "nothing runs on it"
    raise AssertionError(f"it cannot be used ({reason}), and measures all the same")
