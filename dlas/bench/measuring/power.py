"""The power of a program that is run alone in a loop.

References
----------
MIRAGE, section 5.3: sixty readings of the sensor, of which the first ten are dropped.  The paper takes their
median; here it is the mean, which times the time of a call is its energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlas.bench.measuring.meters.mean_power import MeanPower
from dlas.bench.measuring.observers import energy, thermal
from dlas.bench.measuring.observers.energy import EnergyWatched, missing_note, power_fields
from dlas.bench.measuring.observers.observer import Slice
from dlas.bench.measuring.observers.thermal import Thermal
from dlas.bench.measuring.observers.watch import Watching

READINGS = 60
"""Readings of the sensor, of the idle machine and of the program."""
DROPPED = 10
"""The first of them, in which clocks and temperatures settle."""
SPARE = 1.1
"""How much longer than so many periods a phase is: a thread that reads may be late."""
ATTEMPTS = 3
"""How often a phase that had too few readings is repeated, each time twice as long."""
NO_METER = "no sensor of power that may be read"

Phase = Callable[[float], None]
"""Lets so many seconds pass: idle, or with the program in a loop."""


def measure_power(loop: Phase, wait: Phase, watch: Watching, slices: Sequence[Slice]) -> dict[str, Any]:
    """Measure the idle machine, then the program in a loop.

    Parameters
    ----------
    loop : callable
        Runs the program without a pause for at least so many seconds.
    wait : callable
        Waits so many seconds.
    watch : Watching
        The observers, where the program runs: of them, that of energy has the readings.
    slices : sequence of Slice
        Those whose samples tell the time of a call.

    Returns
    -------
    dict
        Fields of a row: what :func:`dlas.bench.measuring.observers.energy.power_fields` returns,
        ``idle_power_w``, and temperature and throttling of the loop and the slices together.
    """
    watch.before()
    seen = watch.after()
    if energy.NAME not in seen:
        return {"power_note": NO_METER}
    period_s = EnergyWatched.of(seen[energy.NAME]).period_s
    idle, _ = _watched(wait, watch, period_s)
    looped, seen = _watched(loop, watch, period_s)
    mean = _mean(looped)
    heat = [*slices, Slice([], 1, {thermal.NAME: seen[thermal.NAME]})] if thermal.NAME in seen else slices
    rest = _mean(idle)
    return {
        **Thermal.fields(heat),
        **power_fields(mean, slices, looped.sensor, None if mean else missing_note(looped.readings)),
        "idle_power_w": rest.watts if rest else None,
    }


def _watched(phase: Phase, watch: Watching, period_s: float) -> tuple[EnergyWatched, dict[str, Any]]:
    """Return what the meter told of a phase, and what all observers saw."""
    seconds = SPARE * READINGS * period_s
    for _ in range(ATTEMPTS):
        watch.before()
        phase(seconds)
        seen = watch.after()
        told = EnergyWatched.of(seen[energy.NAME])
        if len(told.readings) >= READINGS:
            break
        seconds *= 2
    return told, seen


def _mean(told: EnergyWatched) -> MeanPower | None:
    """Return the mean power of a phase without its beginning."""
    return MeanPower.of(told.readings[DROPPED:], told.rails)
