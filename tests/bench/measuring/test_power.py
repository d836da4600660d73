"""Energy and power of a program, by a meter with a known load."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dlas.bench.measuring.disturbance import Reading
from dlas.bench.measuring.meters.counters import EnergyCounters
from dlas.bench.measuring.observers.energy import Energy
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.measuring.power import NO_METER, READINGS, measure_power
from dlas.bench.measuring.sampling import Instruments, sample
from dlas.stack import MeasureSettings
from tests.fixtures.sensors import Load

IDLE_W, BUSY_W = 6.0, 21.0


@dataclass
class Machine:
    """A machine that takes 6 W when idle and 21 W when busy, and whose sensor is read once a period."""

    fails: Callable[[int], bool] = lambda reading: False
    warms: float = 0.0
    """By how much its power rises in a second of work."""
    late: float = 1.0
    """The share of periods in which the thread that reads comes in time."""
    busy: bool = False
    heat: float | None = None
    log: list[str] = field(default_factory=list)
    begun_s: float = 0.0

    def __post_init__(self) -> None:
        self.load = Load(self._watts, fails=self.fails)
        self.meter = EnergyCounters("rapl", [self.load], 0.1, self.load.clock)
        self.energy = Energy(self.meter, self.load.clock)

    def _watts(self, now: float) -> float:
        return BUSY_W + self.warms * (now - self.begun_s) if self.busy else IDLE_W

    def before(self) -> None:
        self.energy.before()

    def after(self) -> dict[str, Any]:
        seen: dict[str, Any] = {"energy": self.energy.after()}
        if self.heat is not None:
            seen["thermal"] = {"temperature_c": self.heat, "throttled": self.heat > 90, "reason": None}
        crossed: dict[str, Any] = json.loads(json.dumps(seen))
        return crossed

    def close(self) -> None:
        """Do nothing."""

    def wait(self, seconds: float) -> None:
        self.log.append("idle")
        self._pass(seconds)

    def loop(self, seconds: float) -> None:
        self.log.append("busy")
        self.busy, self.begun_s = True, self.load.now
        self._pass(seconds)
        self.busy = False

    def _pass(self, seconds: float) -> None:
        for _ in range(round(self.late * seconds / 0.1)):
            self.load.spend(0.1 / self.late)
            self.energy.during()

    def measured(self, *samples: float) -> dict[str, Any]:
        return measure_power(self.loop, self.wait, self, [Slice(list(samples or (0.02, 0.04)), 1, {})])


def test_power_is_that_of_the_loop_and_idle_power_is_told_beside_it() -> None:
    machine = Machine()
    found = machine.measured()
    assert machine.log == ["idle", "busy"]
    assert found["power_w"] == pytest.approx(BUSY_W, rel=0.01)
    assert found["idle_power_w"] == pytest.approx(IDLE_W, rel=0.01)
    assert found["energy_j"] == pytest.approx(BUSY_W * 0.03, rel=0.01), "with what it uses when idle"
    assert found["power_sensor"] == "rapl" and found["power_note"] is None
    assert READINGS - 10 <= found["power_readings"] <= READINGS and found["power_missing"] == 0
    assert found["power_drift"] == pytest.approx(0, abs=1e-3)


def test_the_first_ten_readings_do_not_count() -> None:
    machine = Machine()
    rising = machine._watts
    machine.load.watts = lambda now: 99.0 if machine.busy and now - machine.begun_s < 1.0 else rising(now)
    assert machine.measured()["power_w"] == pytest.approx(BUSY_W, rel=0.01)


def test_a_power_that_drifts_is_told() -> None:
    found = Machine(warms=1.0).measured()
    assert 0.1 < found["power_drift"] < 0.3


def test_a_few_missing_readings_are_told_and_many_leave_no_power() -> None:
    found = Machine(fails=lambda reading: reading % 25 == 0).measured()
    assert found["power_w"] == pytest.approx(BUSY_W, rel=0.01)
    assert 2 <= found["power_missing"] <= 3
    found = Machine(fails=lambda reading: reading % 2 == 0).measured()
    assert found["power_w"] is found["energy_j"] is found["idle_power_w"] is None
    assert "readings of the sensor are missing" in found["power_note"]


def test_a_thread_that_reads_too_late_gets_more_time() -> None:
    machine = Machine(late=0.5)
    found = machine.measured()
    assert machine.log == ["idle", "idle", "busy", "busy"]
    assert found["power_readings"] >= READINGS - 10
    assert found["power_w"] == pytest.approx(BUSY_W, rel=0.01)


def test_what_throttled_the_loop_is_told_too() -> None:
    cool = Slice([0.02], 1, {"thermal": {"temperature_c": 50.0, "throttled": False, "reason": None}})
    machine = Machine(heat=97.0)
    found = measure_power(machine.loop, machine.wait, machine, [cool])
    assert (found["temperature_c"], found["throttled"]) == (97.0, True)


def test_without_a_sensor_the_reason_is_told() -> None:
    log: list[float] = []
    assert measure_power(log.append, log.append, Watch({}), []) == {"power_note": NO_METER}
    assert not log, "nothing ran for it"


def test_during_samples_energy_is_the_mean_power_times_the_time_of_a_call() -> None:
    machine = Machine()
    machine.before()
    machine.loop(10.0)
    seen = machine.after()
    full = Slice([0.01] * 100, 10, seen)
    found = Energy.fields([full])
    assert found["energy_j"] == pytest.approx(BUSY_W * 0.01) and found["power_w"] == pytest.approx(BUSY_W)
    assert "idle_power_w" not in found
    short = Energy.fields([Slice([0.01] * 100, 8, seen)])
    assert short["energy_j"] is short["power_w"] is None
    assert short["power_note"].startswith("samples took 80% of the time")
    assert Energy.fields([full, Slice([0.01], 10, {})])["energy_j"] is None


def test_a_study_asks_for_the_loop_which_a_thread_reads() -> None:
    load, turns = Load(lambda now: 0.0), list[str]()
    processors = Processors(lambda: Reading(time.perf_counter(), 2, 0.0))
    energy = Energy(EnergyCounters("rapl", [load], 1e-3))
    tools = Instruments(watch=Watch({"processors": processors, "energy": energy}))

    def on_device(calls: int) -> float:
        time.sleep(1e-3)
        load.used_j += 1.0
        return 1e-3 * calls

    settings = MeasureSettings(repeats=2, minimum=2, slices=1, sample_seconds=1e-4, power=True)
    found = sample(lambda: None, settings, lambda: turns.append("turn"), tools, on_device)
    assert len(turns) == 2, "the loop is a turn of its own"
    assert found["power_readings"] >= READINGS - 10
    assert found["idle_power_w"] == 0 and found["power_w"] > 0
    assert found["energy_j"] == pytest.approx(1e-3 * found["power_w"])
    plain = sample(lambda: None, replace(settings, power=False), lambda: None, tools, on_device)
    assert "idle_power_w" not in plain
