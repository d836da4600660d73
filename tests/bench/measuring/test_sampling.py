"""Sampling against a clock that the test turns."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from dlas.bench.measuring.disturbance import UNSTABLE, Disturbance, Reading, fraction, read, spread, worst
from dlas.bench.measuring.memory import ResidentMemory
from dlas.bench.measuring.observers import sentinel as sentinels
from dlas.bench.measuring.observers.processors import Processors
from dlas.bench.measuring.observers.sentinel import Sentinel, sentinel
from dlas.bench.measuring.observers.watch import Watch
from dlas.bench.measuring.sampling import Instruments, sample
from dlas.bench.measuring.taken import RETRIES_IN_ALL, Taken, Turn
from dlas.stack import MeasureSettings
from tests.fixtures import calm
from tests.fixtures.package import ROOT


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call measurements unstable as outside tests: the machine of this module is made up."""
    for name, limit in calm.LIMITS.items():
        monkeypatch.setitem(UNSTABLE, name, limit)


@dataclass
class Bench:
    """A machine whose time passes only when something on it runs.

    ``call_s`` gives the seconds of the n-th call, ``others`` and ``sentinel_s``
    what the n-th slice (an attempt, counted from 0) meets.
    """

    call_s: Callable[[int], float] = lambda n: 0.01
    others: Callable[[int], float] = lambda slice_number: 0.0
    sentinel_s: Callable[[int], float] = lambda slice_number: 0.001
    now: float = 100.0
    calls: int = 0
    turns: int = 0
    readings: int = 0
    sentinels: int = 0
    busy_s: float = 0.0
    slept_s: list[float] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def run(self) -> None:
        self.now += self.call_s(self.calls)
        self.calls += 1
        self.log.append("run")

    def turn(self) -> None:
        self.now += 1000.0  # the others' time, which is not this program's
        self.turns += 1
        self.log.append("turn")

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept_s.append(seconds)

    def sentinel(self) -> float:
        self.log.append("sentinel")
        number, self.sentinels = self.sentinels // 2, self.sentinels + 1
        self.now += self.sentinel_s(number)
        return self.sentinel_s(number)

    def read(self) -> Reading:
        self.log.append("read")
        number, ending = divmod(self.readings, 2)
        self.readings += 1
        if ending:
            self.busy_s += self.others(number)
        return Reading(
            clock_s=self.now, processors=2, own_s=self.now, busy_s=self.now + self.busy_s, steal_s=0.0
        )

    @property
    def tools(self) -> Instruments:
        watch = Watch({"sentinel": Sentinel(self.sentinel), "processors": Processors(self.read)})
        return Instruments(lambda: self.now, self.sleep, watch)

    def measure(self, **settings: float) -> dict[str, Any]:
        checked = TypeAdapter(MeasureSettings).validate_python(settings)
        return sample(self.run, checked, self.turn, self.tools)


def test_all_repeats_are_taken_where_time_allows() -> None:
    bench = Bench()
    found = bench.measure()
    assert found["bound"] == "repeats"
    assert found["latency_s"] == pytest.approx([0.01] * 150)
    assert found["calls_per_sample"] == 1
    assert found["noisy"] is False
    assert found["noisy_reason"] is None
    assert found["load"] == found["steal"] == 0.0
    assert bench.slept_s == []


def test_the_first_run_and_the_warm_up_are_not_samples() -> None:
    bench = Bench(call_s=lambda n: 5.0 if n == 0 else 0.5 if n < 3 else 0.01)
    found = bench.measure(seconds=1000)
    assert found["first_run_s"] == pytest.approx(5.0)
    assert found["latency_s"] == pytest.approx([0.01] * 150)


@pytest.mark.parametrize("compiling", [[30.0], [30.0, 30.0], [30.0, 0.1, 0.02]])
def test_a_program_that_compiles_in_its_first_runs_has_the_samples_of_a_warm_one(
    compiling: list[float],
) -> None:
    bench = Bench(call_s=lambda n: compiling[n] if n < len(compiling) else 0.001)
    found = bench.measure(seconds=5)
    assert found["first_run_s"] == pytest.approx(30.0), "more than all the time allowed"
    assert found["latency_s"] == pytest.approx([0.001] * 150)
    assert found["bound"] == "repeats"
    first_sample = bench.log.index("sentinel")
    assert bench.log[:first_sample].count("run") > len(compiling) + 10, "it was warm before the first sample"


def steadily(seconds: float) -> Callable[[int], float]:
    """Return what is always the same."""
    return lambda number: seconds


def in_two_starts(first: Bench, second: Bench, stop: int, **settings: float) -> tuple[Taken, dict[str, Any]]:
    """Return what was kept when a measurement ended after ``stop`` slices, and its result elsewhere."""
    checked, kept = TypeAdapter(MeasureSettings).validate_python(settings), [""]

    def keep(taken: Taken) -> None:
        kept[0] = json.dumps(taken.content())
        if len(taken.chosen) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample(first.run, checked, Turn(first.turn, keep), first.tools)
    before, again = Taken.of(json.loads(kept[0])), Taken.of(json.loads(kept[0]))
    turn = Turn(second.turn, lambda taken: None, again)
    return before, sample(second.run, checked, turn, second.tools)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_measurement_goes_on_with_the_slices_of_an_earlier_start(stop: int) -> None:
    first, second = Bench(lambda n: 3.0 if n == 0 else 0.00015), Bench(lambda n: 0.00013)
    kept, found = in_two_starts(first, second, stop)
    assert found["latency_s"] == pytest.approx([0.00015] * 30 * stop + [0.00013] * 30 * (5 - stop))
    assert found["latency_s"][: 30 * stop] == [seconds for piece in kept.slices for seconds in piece.samples]
    assert (found["bound"], found["calls_per_sample"], found["first_run_s"]) == ("repeats", 7, 3.0)
    assert len(found["sentinel_s"]) == 2 * 5
    assert (found["noisy"], found["unstable"]) == (False, False)
    assert (first.turns, second.turns) == (stop, max(1, 5 - stop))
    assert kept.active_s < found["active_s"] or stop == 5


def test_time_and_repetitions_of_an_earlier_start_count() -> None:
    _, found = in_two_starts(Bench(), Bench(), 2, seconds=5, repeats=10**6)
    assert found["bound"] == "seconds"
    assert found["active_s"] == pytest.approx(5, rel=0.05)
    loud = Bench(others=lambda slice_number: 100.0)
    kept, _ = in_two_starts(loud, louder := Bench(others=lambda slice_number: 100.0), 2)
    assert len(loud.slept_s) == RETRIES_IN_ALL and kept.retries_left == 0
    assert louder.slept_s == []


@pytest.mark.parametrize(
    ("factor", "noisy", "unstable"),
    [(1.05, None, None), (1.2, "20% slower", None), (1.4, "40% slower", "1.4")],
)
def test_a_machine_that_changed_speed_between_two_starts_is_told(
    factor: float, noisy: str | None, unstable: str | None
) -> None:
    for first, second in ((0.001, 0.001 * factor), (0.001 * factor, 0.001)):
        before, after = (Bench(sentinel_s=steadily(each)) for each in (first, second))
        _, found = in_two_starts(before, after, 2)
        for name, expected in (("noisy", noisy), ("unstable", unstable)):
            assert found[name] == (expected is not None)
            assert (expected or "") in (found[f"{name}_reason"] or "")


def test_times_so_far_are_a_result_with_slices_to_compare_and_the_fewest_samples() -> None:
    def suffice(stop: int, bench: Bench, **settings: float) -> bool:
        kept, _ = in_two_starts(bench, Bench(), stop, **settings)
        return kept.suffices(TypeAdapter(MeasureSettings).validate_python(settings))

    assert [suffice(stop, Bench()) for stop in (1, 2, 5)] == [False, True, True]
    assert [suffice(stop, Bench(), repeats=10, minimum=5) for stop in (1, 2, 3)] == [False, False, True]
    assert suffice(1, Bench(), slices=1)
    faster = Bench(call_s=lambda n: 0.01 if n < 80 else 0.002)
    assert not suffice(3, faster), "its times are unstable"


def test_turns_are_taken_before_each_slice_and_are_not_timed() -> None:
    bench = Bench()
    found = bench.measure(repeats=10, slices=5)
    assert bench.turns == 5
    assert bench.log[0] == "turn"
    assert len(found["sentinel_s"]) == 10
    after_turns = [bench.log[i + 1] for i, what in enumerate(bench.log) if what == "turn"]
    assert set(after_turns) == {"run"}, "caches are warmed again before a slice"
    assert found["active_s"] < 5.0


def test_threads_that_spin_beside_the_sentinel_are_no_disturbance() -> None:
    bench = Bench()
    bench.measure(repeats=4, slices=2)
    readings = [i for i, what in enumerate(bench.log) if what == "read"]
    assert len(readings) == 4
    for before, after in zip(readings[::2], readings[1::2], strict=True):
        assert set(bench.log[before + 1 : after]) == {"run"}


@pytest.mark.parametrize(("repeats", "slices"), [(1, 5), (4, 5), (6, 5), (7, 5), (150, 1), (150, 7)])
def test_slices_share_the_repeats(repeats: int, slices: int) -> None:
    bench = Bench()
    found = bench.measure(repeats=repeats, slices=slices)
    assert len(found["latency_s"]) == repeats
    assert bench.turns == min(repeats, slices)


def test_seconds_bound_a_slow_program() -> None:
    found = Bench(call_s=lambda n: 1.0).measure(seconds=60)
    assert found["bound"] == "seconds"
    assert 30 <= len(found["latency_s"]) <= 60
    assert found["active_s"] <= 61


@pytest.mark.parametrize("minimum", [1, 5, 12])
def test_a_few_samples_are_taken_however_slow_the_program(minimum: int) -> None:
    found = Bench(call_s=lambda n: 100.0).measure(seconds=60, minimum=minimum)
    assert found["bound"] == "seconds"
    assert len(found["latency_s"]) == max(5, minimum), "one a slice, or the minimum"


def test_fast_programs_are_called_often_enough_for_the_clock() -> None:
    bench = Bench(call_s=lambda n: 1e-5)
    found = bench.measure(repeats=10, sample_seconds=1e-3)
    assert found["calls_per_sample"] in (100, 101)
    assert found["latency_s"] == pytest.approx([1e-5] * 10)


def test_calls_follow_the_warm_program_not_its_first_run() -> None:
    found = Bench(call_s=lambda n: 2.0 if n == 0 else 1e-4).measure(repeats=5)
    assert found["calls_per_sample"] in (10, 11)


def test_a_disturbed_slice_is_measured_again() -> None:
    bench = Bench(others=lambda number: 1.0 if number == 1 else 0.0)
    found = bench.measure(repeats=50)
    assert found["noisy"] is False
    assert len(found["latency_s"]) == 50
    assert found["load"] == 0.0, "the disturbed attempt is not kept"
    assert bench.readings == 2 * 6
    assert len(bench.slept_s) == 1


def test_lasting_noise_is_marked_with_its_reason() -> None:
    bench = Bench(others=lambda number: 1.0)
    found = bench.measure(repeats=50)
    assert found["noisy"] is True
    assert "5 of 5 slices disturbed: other processes used" in str(found["noisy_reason"])
    assert bench.readings == 2 * (5 + RETRIES_IN_ALL)
    assert 0 < found["load"] <= 1


def test_of_noisy_attempts_the_least_disturbed_is_kept() -> None:
    bench = Bench(others=lambda number: (0.9, 0.3, 0.6, 0.9)[number])
    found = bench.measure(repeats=10, slices=1)
    # one slice: ten samples of 10 ms and two sentinels of 1 ms on two processors
    assert found["load"] == pytest.approx(min(1.0, 0.3 / (2 * 0.102)))


def test_repeating_a_slice_never_costs_the_later_ones_their_samples() -> None:
    bench = Bench(call_s=lambda n: 20.0, others=lambda number: 100.0)
    found = bench.measure(seconds=60)
    assert found["noisy"] is True
    assert len(found["latency_s"]) == 5
    assert bench.slept_s == []


def test_a_sentinel_that_slows_down_marks_the_row() -> None:
    bench = Bench(sentinel_s=lambda number: 0.001 if number else 0.002)
    found = bench.measure(repeats=50)
    assert found["noisy"] is True, "the first slice looked even until a later one ran faster"
    assert found["noisy_reason"] == "1 of 5 slices disturbed: the sentinel ran 100% slower than at its best"


def test_slices_that_disagree_mark_the_row() -> None:
    bench = Bench()
    bench.call_s = lambda n: 0.01 * (1.5 if bench.turns == 3 else 1)
    assert "medians of the slices are 50% apart" in str(bench.measure(repeats=50)["noisy_reason"])


def test_rows_say_how_many_samples_each_slice_has() -> None:
    found = Bench().measure(repeats=12, slices=5)
    assert found["slice_samples"] == [3, 3, 2, 2, 2] and len(found["latency_s"]) == 12


def test_slices_of_one_measurement_have_as_many_samples_each() -> None:
    bench = Bench()
    bench.call_s = lambda n: 0.001
    counts = bench.measure(repeats=100_000, seconds=3.0, slices=30)["slice_samples"]
    assert len(counts) == 30 and min(counts) > 20 and max(counts) <= 1.2 * min(counts)


@pytest.mark.parametrize("slow", [2, 3])
def test_of_many_slices_the_outermost_say_nothing_against_their_median(slow: int) -> None:
    bench = Bench()
    bench.call_s = lambda n: 0.01 * (9 if 5 < bench.turns <= 5 + slow else 1)
    assert bench.measure(repeats=400, slices=40)["unstable"] is (slow > 2)


@pytest.mark.parametrize(
    ("slow_slice", "slow_sentinel", "reason"),
    [
        (1.9, 1.2, None),
        (9.2, 1.2, "the medians of its slices differ by a factor of 9.2"),
        (123.4, 1.2, "the medians of its slices differ by a factor of 123"),
        (1.9, 1.5, "runs of the sentinel differ by a factor of 1.5"),
    ],
)
def test_slices_that_are_far_apart_are_no_result(
    slow_slice: float, slow_sentinel: float, reason: str | None
) -> None:
    bench = Bench(sentinel_s=lambda number: 0.001 * (slow_sentinel if number > 2 else 1))
    bench.call_s = lambda n: 0.01 * (slow_slice if bench.turns == 3 else 1)
    found = bench.measure(repeats=50)
    assert (found["unstable"], found["unstable_reason"]) == (reason is not None, reason)
    assert (found["instability"] >= 1) == found["unstable"]
    assert found["noisy"] is True


def test_spread_samples_mark_the_row() -> None:
    found = Bench(call_s=lambda n: 0.01 if n % 2 else 0.02).measure(repeats=50)
    assert "samples spread" in str(found["noisy_reason"])


def test_the_collector_rests_while_samples_are_taken() -> None:
    during = set()
    bench = Bench(sentinel_s=lambda number: during.add(gc.isenabled()) or 0.001)  # type: ignore[func-returns-value]
    bench.measure(repeats=5)
    assert during == {False}
    assert gc.isenabled()


def test_a_program_that_fails_is_not_swallowed() -> None:
    def fail() -> None:
        raise RuntimeError("device lost")

    with pytest.raises(RuntimeError, match="device lost"):
        sample(fail, MeasureSettings(), lambda: None)
    assert gc.isenabled()


@pytest.mark.parametrize(
    "wrong",
    [
        {"repeats": 0},
        {"seconds": 0},
        {"seconds": float("inf")},
        {"minimum": 0},
        {"slices": 0},
        {"layer_repeats": -1},
    ],
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(MeasureSettings).validate_python(wrong)


def test_real_instruments_measure_a_real_program() -> None:
    x = np.linspace(0, 1, 4096)
    found = sample(lambda: np.sqrt(x), MeasureSettings(repeats=10, seconds=5, slices=2), lambda: None)
    assert len(found["latency_s"]) == 10 and len(found["sentinel_s"]) == 4
    assert min(found["latency_s"]) > 0
    assert found["calls_per_sample"] >= 1
    assert found["active_s"] < 10


# ---------------------------------------------------------------- disturbance


def reading(clock: float, own: float, busy: float | None, **waited: float) -> Reading:
    return Reading(clock, processors=2, own_s=own, busy_s=busy, steal_s=busy and 0.0, waited=waited)


def test_other_processes_time_is_what_is_left_of_the_busy_time() -> None:
    seen = Disturbance.between(reading(0, 0, 10), reading(10, 8, 24))
    assert seen.others_s == pytest.approx(6)
    assert seen.shares()["load"] == pytest.approx(6 / 20)


def test_threads_that_wait_for_a_processor_are_seen() -> None:
    before, after = reading(0, 0, 0, main=1, worker=1), reading(10, 8, 8, main=2, worker=2, new=50)
    assert Disturbance.between(before, after).shares()["wait"] == pytest.approx(2 / 10)


def test_a_tick_or_two_is_no_evidence() -> None:
    assert "load" not in Disturbance.between(reading(0, 0, 0), reading(0.03, 0.03, 0.05)).shares()


def test_what_the_kernel_hides_is_none() -> None:
    seen = Disturbance.between(reading(0, 0, None), reading(1, 1, None))
    assert (seen.others_s, seen.steal_s, seen.wait_s) == (None, None, None)
    assert seen.shares() == {}
    assert fraction([seen.others_s], [seen.capacity_s]) is None


def test_the_worst_measure_gives_the_reason() -> None:
    score, reason = worst({"load": 0.05, "drift": 0.30})
    assert score == pytest.approx(3)
    assert reason == "the sentinel ran 30% slower than at its best"
    assert worst({}) == (0.0, "")


def test_spread_needs_samples() -> None:
    assert spread([1.0, 2.0, 3.0]) is None
    assert spread([2.0] * 8) == 0


def test_the_machine_can_be_read() -> None:
    before, taken, after = read(), sentinel(), read()
    assert taken > 0
    assert Disturbance.between(before, after).capacity_s > 0


# ---------------------------------------------------------------- memory


def test_the_sentinel_takes_all_processors_at_once_and_the_slowest_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed = os.sched_getaffinity(0)
    seconds = {processor: 1.0 + number for number, processor in enumerate(sorted(allowed))}
    monkeypatch.setattr(sentinels, "_arithmetic", lambda *_: seconds[min(os.sched_getaffinity(0))])
    assert sentinel() == max(seconds.values())
    assert os.sched_getaffinity(0) == allowed


def test_the_sentinel_does_not_wait_for_pythons_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def sqrt(numbers: Any, out: Any) -> Any:
        calls.append(numbers.size)
        return roots(numbers, out=out)

    roots = np.sqrt
    monkeypatch.setattr(np, "sqrt", sqrt)
    seconds = sentinels._arithmetic(time.perf_counter, runs=3)
    assert calls == [sentinels.NUMBERS * sentinels.PASSES] * 3  # each in one call, without the lock
    assert seconds > 0


TAKES_AND_FREES = """
import numpy as np
from dlas.bench.measuring.memory import ResidentMemory

memory = ResidentMemory.start()
held = np.ones(8_000_000)
del held
print(memory.bytes_above())
"""


def test_resident_memory_sees_what_was_freed_again() -> None:
    # In a process of its own: here, what earlier tests left may be freed meanwhile, which hides the peak.
    command = [sys.executable, "-c", TAKES_AND_FREES]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert said == "None" or 60e6 < int(said) < 200e6


def status(folder: Path, resident: int, peak: int) -> None:
    (folder / "status").write_text(f"Name:\tpython\nVmHWM:\t{peak} kB\nVmRSS:\t{resident} kB\n")


def test_resident_memory_without_a_reset(tmp_path: Path) -> None:
    status(tmp_path, resident=100_000, peak=300_000)
    memory = ResidentMemory.start(tmp_path)
    assert memory.bytes_above() is None, "the old peak hides what came since"
    status(tmp_path, resident=100_000, peak=350_000)
    assert memory.bytes_above() == 250_000 * 1024


def test_resident_memory_where_nothing_is_shown(tmp_path: Path) -> None:
    assert ResidentMemory.start(tmp_path / "absent").bytes_above() is None


def test_a_devices_own_clock_tells_all_but_the_first_run() -> None:
    bench, asked = Bench(call_s=lambda n: 0.05), []

    def timer(runs: int) -> float:
        asked.append(runs)
        bench.now += 0.05 * runs  # what passes here, with the way to the device and back
        return 2e-4 * runs

    found = sample(bench.run, MeasureSettings(repeats=10, seconds=10), bench.turn, bench.tools, timer)
    assert found["first_run_s"] == pytest.approx(0.05)
    assert found["latency_s"] == pytest.approx([2e-4] * 10)
    assert found["calls_per_sample"] == 5, "a sample lasts a millisecond by the device's clock"
    assert bench.calls == 1
    assert asked.count(5) == 10
