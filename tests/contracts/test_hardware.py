"""Every device there is keeps its contract, and the contract notices what does not."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from dlas.bench.measuring import sampling
from dlas.stack import Hardware, Images, MeasureSettings, Program, Target, TrainingStep
from dlas.sweep.study import parts
from dlas.testing import check_hardware

COUNT = itertools.count()


@pytest.mark.parametrize("name", parts.names("hardware"))
def test_hardware_keeps_its_contract(name: str) -> None:
    check_hardware(parts.make("hardware", name, {}))


def take(run: Callable[[], Any], repeats: int) -> list[float]:
    """Return the seconds of each of several runs."""
    samples = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        samples.append(time.perf_counter() - started)
    return samples


@dataclass(frozen=True)
class Device(Hardware):
    """Measures in the simplest way."""

    reason: str | None = None

    @property
    def device(self) -> str:
        return "stub"

    def unsupported(self) -> str | None:
        return self.reason

    def target(self) -> Target:
        return Target({"kind": "stub"}, 1)

    def describe(self) -> dict[str, Any]:
        return {"cpu": "stub"}

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        turn()
        first, *samples = take(program.bind(images), 1 + settings.repeats)
        return {"latency_s": samples, "first_run_s": first}


@dataclass(frozen=True)
class Milliseconds(Device):
    """Measures in another unit."""

    def measure(self, *given: Any) -> dict[str, Any]:
        measured = super().measure(*given)
        return {**measured, "latency_s": [1e6 * sample for sample in measured["latency_s"]]}


@dataclass(frozen=True)
class Idle(Device):
    """Runs nothing."""

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        turn()
        return {"latency_s": [1e-6] * settings.repeats, "first_run_s": 1e-6}


@dataclass(frozen=True)
class Rude(Device):
    """Does not wait for its turn."""

    def measure(
        self, program: Program, images: Images, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        return super().measure(program, images, settings, lambda: None)


@dataclass(frozen=True)
class HastyTrainer(Device):
    """Tells times of training steps that it does not run."""

    def measure_training(
        self, step: TrainingStep, settings: MeasureSettings, turn: Callable[[], None]
    ) -> dict[str, Any]:
        turn()
        return {"latency_s": [1e-6] * settings.repeats, "first_run_s": 1e-6}


@dataclass(frozen=True)
class Once(Device):
    """Takes one sample."""

    def measure(self, *given: Any) -> dict[str, Any]:
        measured = super().measure(*given)
        return {**measured, "latency_s": measured["latency_s"][:1]}


@dataclass(frozen=True)
class Unsure(Device):
    """Describes itself differently every time."""

    def describe(self) -> dict[str, Any]:
        return {"number": next(COUNT)}


@dataclass(frozen=True)
class Objects(Device):
    """Describes itself by what JSON cannot hold."""

    def describe(self) -> dict[str, Any]:
        return {"sampling": sampling}


@dataclass(frozen=True)
class Threadless(Device):
    """Has a target without threads."""

    def target(self) -> Target:
        return Target({"kind": "stub"}, 0)


def test_a_simple_device_keeps_the_contract() -> None:
    check_hardware(Device())


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Milliseconds(), "times are in seconds"),
        (Idle(), "1e-06 s for a run that takes 0.005 s"),
        (Rude(), "without asking for its turn"),
        (Once(), "it takes 1 samples, not 2 to 4"),
        (Unsure(), "its description is"),
        (Objects(), "TypeError.*JSON"),
        (HastyTrainer(), "s for a run that takes"),
        (Threadless(), "its target has 0 threads"),
        (Device(reason=" "), "does not say why"),
        (Device(reason="broken"), "measures all the same"),
    ],
)
def test_a_broken_contract_is_noticed(wrong: Hardware, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_hardware(wrong)
