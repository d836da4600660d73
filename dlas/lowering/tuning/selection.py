"""Selection of a trial to build with: the number of trials that count, and the best of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlas.lowering.tuning.records import Records, Selection, Trial

FINALISTS = 5
"""Number of best trials to measure again: a single measurement is sometimes wrong."""
SAMPLES = 5
"""Samples of each finalist, taken in turns."""
TIE = 0.01
"""Finalists whose medians differ by a smaller share are tied."""
METHOD: dict[str, Any] = {"finalists": FINALISTS, "samples": SAMPLES, "tie": TIE}
"""Settings that a recorded selection depends on."""


@dataclass(frozen=True)
class Budget:
    """The budget of one workload's search."""

    trials: int
    """Largest number of trials."""
    early_stop: int = 0
    """End after this many trials without improvement; 0 for never."""


def count_trials(records: Records, budget: Budget) -> int | None:
    """Return the number of first trials that count; None while more are needed.

    It depends only on the budget and the results: further trials by another study
    do not change it.
    """
    best, best_at = float("inf"), -1
    for number in range(budget.trials):
        trial = records.trials.get(number)
        if trial is None:
            proposed_all = records.exhausted and number == len(records.candidates)
            return number if proposed_all else None
        if trial.valid and trial.median_s < best:
            best, best_at = trial.median_s, number
        if budget.early_stop and number - best_at >= budget.early_stop:
            return number + 1
    return budget.trials


def first_trials(records: Records, count: int) -> list[Trial]:
    """Return the first ``count`` trials."""
    return [records.trials[number] for number in range(count)]


def curve(trials: Sequence[Trial]) -> list[tuple[int, float, float]]:
    """Return [trials, seconds of search, seconds a call] at each improvement."""
    points: list[tuple[int, float, float]] = []
    seconds = 0.0
    for count, trial in enumerate(trials, start=1):
        seconds += trial.seconds
        if trial.valid and (not points or trial.median_s < points[-1][2]):
            points.append((count, seconds, trial.median_s))
    return points


def finalists(trials: Sequence[Trial]) -> list[int]:
    """Return the numbers of the best trials and of the first valid one, the initial guess."""
    valid = [trial for trial in trials if trial.valid]
    best = sorted(valid, key=lambda trial: (trial.median_s, trial.number))[:FINALISTS]
    return sorted({*(trial.number for trial in best), *(trial.number for trial in valid[:1])})


def recorded_selection(records: Records, count: int) -> Selection | None:
    """Return the latest recorded selection among the first ``count`` trials, None if there is none."""
    for selection in reversed(records.selections):
        if selection.trials == count and selection.method == METHOD:
            return selection
    return None


def winner(samples: Mapping[int, Sequence[float]]) -> int:
    """Return the fastest finalist; the earliest of those that tie with it.

    Parameters
    ----------
    samples : mapping of int to sequence of float
        Seconds a call, by trial.
    """
    medians = {number: statistics.median(seconds) for number, seconds in samples.items()}
    fastest = min(medians, key=lambda number: (medians[number], number))
    count = len(samples[fastest])
    low, _, high = statistics.quantiles(samples[fastest], n=4) if count > 1 else (0.0, 0.0, 0.0)
    noise = max(TIE, (high - low) / math.sqrt(count) / medians[fastest])
    return min(number for number, median in medians.items() if median <= medians[fastest] * (1 + noise))


def failures(trials: Sequence[Trial]) -> str:
    """Return why trials failed: the three most frequent reasons, each with its count."""
    reasons = Counter(f"{trial.failed}: {trial.words}" for trial in trials if trial.failed)
    return "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3))
