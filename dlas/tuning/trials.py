"""One workload's search: trials until enough count, then the choice among the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dlas.processes.workers import Crew, Reply
from dlas.tuning import choosing
from dlas.tuning.choosing import METHOD, Budget
from dlas.tuning.records import Baseline, Choice, RecordFile, Records, Round, Trial

BUILD_S = 60.0
"""How long building one candidate may take."""
ANSWER_S = 900.0
"""How long building and running the minimal schedule may take: on a large layer it is slow."""
RUN_S = 10.0
SLOWER = 30.0
"""How long running a candidate may take, and how many runs of the minimal schedule more."""


class NoSchedule(Exception):
    """A search found nothing that computes its layer."""


class Proposer(Protocol):
    """Where candidates come from."""

    def propose(self, records: Records) -> list[dict[str, Any]]:
        """Return the candidates of the next round, none where there are no more."""
        ...


@dataclass
class Search:
    """A search under way.

    Parameters
    ----------
    number : int
        The workload's place among those that the crew knows.
    file : RecordFile
        Its records; every trial is written at once.
    proposer : Proposer
    crew : callable
        Returns the workers, which start when they are needed first.
    say : callable
        Takes a line of progress.
    answered : set of int
        Workloads whose right answers this session's workers have.
    """

    number: int
    file: RecordFile
    proposer: Proposer
    crew: Callable[[], Crew]
    say: Callable[[str], None]
    answered: set[int]
    held: dict[int, int] = field(default_factory=dict)
    since: float = field(default_factory=time.monotonic)

    @property
    def records(self) -> Records:
        """All that is known of the workload."""
        return self.file.records

    def run(self, budget: Budget) -> int:
        """Try candidates until the budget is spent; return how many trials count."""
        while (count := choosing.counting(self.records, budget)) is None:
            there = min(budget.trials, len(self.records.candidates))
            missing = [number for number in range(there) if number not in self.records.trials]
            if missing:
                self._measure(missing, budget)
            else:
                self.file.add(Round(self.proposer.propose(self.records)))
        return count

    def answer(self) -> Baseline:
        """Let the minimal schedule give the right answer, once a session; return how long it takes.

        Raises
        ------
        NoSchedule
            If not even that works.
        """
        if self.number not in self.answered:
            reply = self.crew().ask(0, ANSWER_S, do="answer", workload=self.number)
            if "failed" in reply:
                raise NoSchedule(f"the minimal schedule fails: {reply['words']}")
            if self.records.baseline is None:
                self.file.add(Baseline(reply["run_s"]))
            self.answered.add(self.number)
        assert self.records.baseline is not None
        return self.records.baseline

    # ------------------------------------------------------------ trials

    def _measure(self, missing: Sequence[int], budget: Budget) -> None:
        """Build side by side, time one after the other; what a crash took along is done again."""
        self.answer()
        while missing:
            traces = self._build(missing)
            for number, trace in traces.items():
                if number in self.held:
                    self._time(number, trace, budget)
            missing = [number for number in missing if number not in self.records.trials]

    def _build(self, numbers: Sequence[int]) -> dict[int, Any]:
        """Build candidates; return the traces of those that could be, None for those that are one."""
        traces: dict[int, Any] = {}
        messages = [self._message("build", number) for number in numbers]
        for place, worker, reply in self.crew().share(messages, BUILD_S):
            number = numbers[place]
            self._note(worker, reply)
            if "failed" in reply:
                self._failed(number, reply)
            else:
                traces[number] = reply["trace"]
                self.held[number] = worker
        return dict(sorted(traces.items()))

    def _message(self, verb: str, number: int) -> dict[str, Any]:
        candidate = self.records.candidates[number]
        return {"do": verb, "workload": self.number, "candidate": candidate, "number": number}

    def _time(self, number: int, trace: Any, budget: Budget) -> None:
        """Time one candidate while nothing else runs, and keep it if it may be among the best."""
        best = min((trial.median_s for trial in self.records.valid), default=None)
        worker = self.held[number]
        reply = self.crew().ask(
            worker, self._run_limit(), do="time", workload=self.number, number=number, best_s=best
        )
        self._note(worker, reply)
        if "failed" in reply:
            self._failed(number, reply)
        else:
            self.file.add(Trial(number, self._lap(), run_s=reply["run_s"], trace=trace))
        self._forget_slow(number)
        self._tell(budget)

    def _failed(self, number: int, reply: Reply) -> None:
        self.file.add(Trial(number, self._lap(), failed=reply["failed"], words=reply["words"]))

    def _note(self, worker: int, reply: Reply) -> None:
        """Note what a worker that is gone took along."""
        if reply.get("gone"):
            self.held = {number: where for number, where in self.held.items() if where != worker}

    def _forget_slow(self, latest: int) -> None:
        """Let workers drop what is not among the best so far; what is not timed yet stays."""
        best = set(choosing.finalists(self.records.valid))
        timed = [number for number in self.held if number in self.records.trials and number not in best]
        for number in timed:
            worker = self.held.pop(number)
            self._note(worker, self.crew().ask(worker, RUN_S, do="drop", numbers=[number]))

    def _lap(self) -> float:
        """Return the seconds since the last record."""
        now = time.monotonic()
        passed, self.since = now - self.since, now
        return passed

    def _run_limit(self) -> float:
        assert self.records.baseline is not None
        return RUN_S + SLOWER * max(self.records.baseline.run_s)

    def _tell(self, budget: Budget) -> None:
        valid = self.records.valid
        best = f", best {min(trial.median_s for trial in valid) * 1e3:.4g} ms" if valid else ""
        self.say(f"trial {len(self.records.trials)} of {budget.trials}{best}")

    # ------------------------------------------------------------ the choice

    def choose(self, count: int) -> Choice:
        """Return the choice among the first ``count`` trials: the one on record, or a new one.

        Raises
        ------
        NoSchedule
            If none of them is valid; quotes what most of them failed of.
        """
        made = choosing.recorded(self.records, count)
        if made is None:
            made = self._chosen(count)
            self.file.add(made)
        return made

    def _chosen(self, count: int) -> Choice:
        trials = choosing.first(self.records, count)
        numbers = choosing.finalists(trials)
        if not trials:
            raise NoSchedule("the space has no candidates")
        if not numbers:
            raise NoSchedule(f"none of {count} candidates is valid: {choosing.failures(trials)}")
        self.since = time.monotonic()
        samples = {number: list(self.records.trials[number].run_s) for number in numbers}
        if len(numbers) > 1:
            self.answer()
            samples = self._again(numbers) or samples
        finalists = {str(number): taken for number, taken in samples.items()}
        return Choice(count, METHOD, choosing.winner(samples), finalists, self._lap())

    def _again(self, numbers: Sequence[int]) -> dict[int, list[float]]:
        """Measure the best once more, in turns; one that fails now is out."""
        absent = [number for number in numbers if number not in self.held]
        messages = [self._message("build", number) for number in absent]
        for place, worker, reply in self.crew().share(messages, BUILD_S):
            self._note(worker, reply)
            if "failed" not in reply:
                self.held[absent[place]] = worker
        samples: dict[int, list[float]] = {number: [] for number in numbers if number in self.held}
        for _ in range(choosing.SAMPLES):
            for number in [number for number in samples if number in self.held]:
                worker = self.held[number]
                reply = self.crew().ask(
                    worker, self._run_limit(), do="sample", workload=self.number, number=number
                )
                self._note(worker, reply)
                samples[number] += reply.get("run_s", [])
        return {number: taken for number, taken in samples.items() if len(taken) == choosing.SAMPLES}

    def close(self) -> None:
        """Let the workers drop what is left."""
        for number, worker in self.held.items():
            self.crew().ask(worker, RUN_S, do="drop", numbers=[number])
        self.held = {}
