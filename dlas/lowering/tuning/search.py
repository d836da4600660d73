"""The search for one workload: trials until the budget is spent, then a selection among the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlas.bench.processes.workers import Reply
from dlas.lowering.tuning.measurers import Measurer
from dlas.lowering.tuning.record_files import RecordFile
from dlas.lowering.tuning.records import Baseline, Records, Round, Selection, Trial
from dlas.lowering.tuning.selection import (
    METHOD,
    SAMPLES,
    Budget,
    count_trials,
    failures,
    finalists,
    first_trials,
    recorded_selection,
    winner,
)

RUN_S = 10.0
SLOWER = 30.0
"""Time limit for running a candidate: ``RUN_S`` plus this many runs of the minimal schedule."""


class NoSchedule(Exception):
    """A search found no valid schedule for its layer."""


class Proposer(Protocol):
    """Proposes candidates."""

    def propose(self, records: Records) -> list[dict[str, Any]]:
        """Return the candidates of the next round, empty if there are no more."""
        ...


@dataclass
class Search:
    """A running search."""

    number: int
    """The workload's index in the workers."""
    file: RecordFile
    """Its records; every trial is written at once."""
    proposer: Proposer
    measurer: Measurer
    say: Callable[[str], None]
    """Takes a line of progress."""
    with_reference: set[int]
    """Workloads whose reference outputs the workers have."""
    since: float = field(default_factory=time.monotonic)
    """When the current trial started."""

    @property
    def records(self) -> Records:
        """The records of the workload."""
        return self.file.records

    def run(self, budget: Budget) -> int:
        """Try candidates until the budget is spent; return how many trials count."""
        while (count := count_trials(self.records, budget)) is None:
            proposed = min(budget.trials, len(self.records.candidates))
            missing = [number for number in range(proposed) if number not in self.records.trials]
            if missing:
                self._measure(missing, budget)
            else:
                self.file.add(Round(self.proposer.propose(self.records)))
        return count

    def baseline(self) -> Baseline:
        """Return the times of the minimal schedule; the first call also computes the reference output.

        Raises
        ------
        NoSchedule
            If the minimal schedule fails.
        """
        if self.number not in self.with_reference:
            reply = self.measurer.reference(self.number)
            if "failed" in reply:
                raise NoSchedule(f"the minimal schedule fails: {reply['words']}")
            if self.records.baseline is None:
                self.file.add(Baseline(reply["run_s"]))
            self.with_reference.add(self.number)
        assert self.records.baseline is not None
        return self.records.baseline

    def select(self, count: int) -> Selection:
        """Return the selection among the first ``count`` trials: the recorded one, or a new one.

        Raises
        ------
        NoSchedule
            If no trial is valid; quotes the most frequent failures.
        """
        selection = recorded_selection(self.records, count)
        if selection is None:
            selection = self._new_selection(count)
            self.file.add(selection)
        return selection

    def close(self) -> None:
        """Drop the built candidates."""
        if built := self.measurer.built:
            self.measurer.drop(built)

    def _measure(self, missing: Sequence[int], budget: Budget) -> None:
        """Build in parallel, time one after the other; rebuild candidates of crashed workers."""
        self.baseline()
        while missing:
            traces = self._build(missing)
            for number, trace in traces.items():
                if number in self.measurer.built:
                    self._time(number, trace, budget)
            missing = [number for number in missing if number not in self.records.trials]

    def _build(self, numbers: Iterable[int]) -> dict[int, list[Any] | None]:
        """Build candidates; return their traces, None for a candidate that is a trace itself."""
        traces: dict[int, list[Any] | None] = {}
        for number, reply in self.measurer.build(self.number, self._candidates(numbers)):
            if "failed" in reply:
                self._add_failure(number, reply)
            else:
                traces[number] = reply["trace"]
        return dict(sorted(traces.items()))

    def _candidates(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        return {number: self.records.candidates[number] for number in numbers}

    def _time(self, number: int, trace: list[Any] | None, budget: Budget) -> None:
        """Time one candidate while nothing else runs; drop it unless it is among the best."""
        best = min((trial.median_s for trial in self.records.valid), default=None)
        reply = self._run("time", number, best_s=best)
        if "failed" in reply:
            self._add_failure(number, reply)
        else:
            self.file.add(Trial(number, self._lap(), run_s=reply["run_s"], trace=trace))
        self._drop_slow()
        self._report(budget)

    def _run(self, verb: str, number: int, **more: Any) -> Reply:
        """Run a built candidate while nothing else runs on the device."""
        seconds = RUN_S + SLOWER * max(self.baseline().run_s)
        return self.measurer.run(verb, self.number, number, seconds, **more)

    def _add_failure(self, number: int, reply: Reply) -> None:
        self.file.add(Trial(number, self._lap(), failed=reply["failed"], words=reply["words"]))

    def _drop_slow(self) -> None:
        """Drop timed candidates that are not among the best so far."""
        best = set(finalists(self.records.valid))
        slow = [n for n in self.measurer.built if n in self.records.trials and n not in best]
        if slow:
            self.measurer.drop(slow)

    def _lap(self) -> float:
        """Return the seconds since the last record."""
        now = time.monotonic()
        elapsed, self.since = now - self.since, now
        return elapsed

    def _report(self, budget: Budget) -> None:
        valid = self.records.valid
        best = f", best {min(trial.median_s for trial in valid) * 1e3:.4g} ms" if valid else ""
        self.say(f"trial {len(self.records.trials)} of {budget.trials}{best}")

    def _new_selection(self, count: int) -> Selection:
        trials = first_trials(self.records, count)
        if not trials:
            raise NoSchedule("the space has no candidates")
        numbers = finalists(trials)
        if not numbers:
            raise NoSchedule(f"none of {count} candidates is valid: {failures(trials)}")
        self.since = time.monotonic()
        samples = {number: list(self.records.trials[number].run_s) for number in numbers}
        if len(numbers) > 1:
            self.baseline()
            samples = self._measure_again(numbers) or samples
        measured = {str(number): seconds for number, seconds in samples.items()}
        return Selection(count, METHOD, winner(samples), measured, self._lap())

    def _measure_again(self, numbers: Sequence[int]) -> dict[int, list[float]]:
        """Sample the finalists in turns; leave out those that fail."""
        missing = [number for number in numbers if number not in self.measurer.built]
        for _ in self.measurer.build(self.number, self._candidates(missing)):
            """Those that fail are left out."""
        samples: dict[int, list[float]] = {n: [] for n in numbers if n in self.measurer.built}
        for _ in range(SAMPLES):
            for number in [number for number in samples if number in self.measurer.built]:
                samples[number] += self._run("sample", number).get("run_s", [])
        return {number: seconds for number, seconds in samples.items() if len(seconds) == SAMPLES}
