"""The search for one workload: trials until the budget is spent, then a selection among the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlas.processes.workers import Reply, WorkerPool
from dlas.tuning.record_files import RecordFile
from dlas.tuning.records import Baseline, Records, Round, Selection, Trial
from dlas.tuning.selection import (
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

BUILD_S = 60.0
"""Time limit for building a candidate."""
REFERENCE_S = 900.0
"""Time limit for building and running the minimal schedule, which is slow on large layers."""
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
    """A running search.

    Parameters
    ----------
    number : int
        The workload's index in the workers.
    file : RecordFile
        Its records; every trial is written at once.
    proposer : Proposer
    workers : callable
        Returns the pool; workers start when it is first called.
    say : callable
        Takes a line of progress.
    with_reference : set of int
        Workloads whose reference outputs the workers have.
    built_by : dict of int
        The worker that holds a built candidate, by the candidate's number.
    since : float
        When the current trial started.
    """

    number: int
    file: RecordFile
    proposer: Proposer
    workers: Callable[[], WorkerPool]
    say: Callable[[str], None]
    with_reference: set[int]
    built_by: dict[int, int] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)

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
            reply = self.workers().call(0, REFERENCE_S, do="reference", workload=self.number)
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
        """Let the workers drop the built candidates."""
        for number, worker in self.built_by.items():
            self.workers().call(worker, RUN_S, do="drop", numbers=[number])
        self.built_by = {}

    def _measure(self, missing: Sequence[int], budget: Budget) -> None:
        """Build in parallel, time one after the other; rebuild candidates of crashed workers."""
        self.baseline()
        while missing:
            traces = self._build(missing)
            for number, trace in traces.items():
                if number in self.built_by:
                    self._time(number, trace, budget)
            missing = [number for number in missing if number not in self.records.trials]

    def _build(self, numbers: Sequence[int]) -> dict[int, list[Any] | None]:
        """Build candidates; return their traces, None for a candidate that is a trace itself."""
        traces: dict[int, list[Any] | None] = {}
        for number, reply in self._built(numbers):
            if "failed" in reply:
                self._add_failure(number, reply)
            else:
                traces[number] = reply["trace"]
        return dict(sorted(traces.items()))

    def _built(self, numbers: Sequence[int]) -> Iterator[tuple[int, Reply]]:
        """Let the workers build candidates in parallel; yield each with its reply."""
        messages = [self._message("build", number) for number in numbers]
        for place, worker, reply in self.workers().map(messages, BUILD_S):
            self._forget_lost(worker, reply)
            if "failed" not in reply:
                self.built_by[numbers[place]] = worker
            yield numbers[place], reply

    def _message(self, verb: str, number: int) -> dict[str, Any]:
        candidate = self.records.candidates[number]
        return {"do": verb, "workload": self.number, "candidate": candidate, "number": number}

    def _time(self, number: int, trace: list[Any] | None, budget: Budget) -> None:
        """Time one candidate while nothing else runs; drop it unless it is among the best."""
        best = min((trial.median_s for trial in self.records.valid), default=None)
        reply = self._call_builder(number, "time", best_s=best)
        if "failed" in reply:
            self._add_failure(number, reply)
        else:
            self.file.add(Trial(number, self._lap(), run_s=reply["run_s"], trace=trace))
        self._drop_slow()
        self._report(budget)

    def _call_builder(self, number: int, verb: str, **more: Any) -> Reply:
        """Let the worker that built a candidate run it, while the other workers are stopped."""
        worker = self.built_by[number]
        seconds = RUN_S + SLOWER * max(self.baseline().run_s)
        reply = self.workers().call(worker, seconds, do=verb, workload=self.number, number=number, **more)
        self._forget_lost(worker, reply)
        return reply

    def _add_failure(self, number: int, reply: Reply) -> None:
        self.file.add(Trial(number, self._lap(), failed=reply["failed"], words=reply["words"]))

    def _forget_lost(self, worker: int, reply: Reply) -> None:
        """Forget the candidates of a worker that has died."""
        if reply.get("gone"):
            self.built_by = {number: holder for number, holder in self.built_by.items() if holder != worker}

    def _drop_slow(self) -> None:
        """Let workers drop timed candidates that are not among the best so far."""
        best = set(finalists(self.records.valid))
        for number in [n for n in self.built_by if n in self.records.trials and n not in best]:
            worker = self.built_by.pop(number)
            self._forget_lost(worker, self.workers().call(worker, RUN_S, do="drop", numbers=[number]))

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
        list(self._built([number for number in numbers if number not in self.built_by]))
        samples: dict[int, list[float]] = {number: [] for number in numbers if number in self.built_by}
        for _ in range(SAMPLES):
            for number in [number for number in samples if number in self.built_by]:
                samples[number] += self._call_builder(number, "sample").get("run_s", [])
        return {number: seconds for number, seconds in samples.items() if len(seconds) == SAMPLES}
