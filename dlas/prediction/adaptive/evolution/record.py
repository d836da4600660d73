"""What a search asked for and found: ``search.json`` in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic

from dlas.bench.store.records import Strict
from dlas.prediction.adaptive.records import RunRecord, RunRequest, read_record
from dlas.sweep.rows.labels import MISSING, duration, number_of

FILE = "search.json"
LEVEL = 0.95
"""Of the interval of a share."""
Finite = Annotated[float, pydantic.Field(allow_inf_nan=False)]
Bound = Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, pydantic.Field(max_length=4000)]


class SearchRequest(RunRequest):
    """What a search asked for."""

    study: Annotated[str, pydantic.Field(max_length=1 << 20)]
    """The study file's content."""
    estimators: Annotated[list[Text], pydantic.Field(min_length=1, max_length=100)]
    """Where costs are from."""
    maximise: Text
    """Where scores are from."""
    within: Annotated[dict[Text, Bound], pydantic.Field(min_length=1, max_length=100)]
    """What is bounded, ``latency_s``, and the most that it may be."""
    population: Annotated[int, pydantic.Field(ge=2, le=100_000)]
    generations: Annotated[int, pydantic.Field(ge=0, le=1_000_000)]
    parents: Annotated[float, pydantic.Field(gt=0, le=1)]
    mutation: Annotated[float, pydantic.Field(ge=0, le=1)]
    seed: Annotated[int, pydantic.Field(ge=0, lt=2**32)]


class CostRecord(Strict):
    """What a candidate costs."""

    value: Finite
    high: Finite
    """What was estimated, and the upper end of its interval."""
    measured: Finite | None = None
    """What was measured in the end."""


class CandidateRecord(Strict):
    """A candidate that was found."""

    label: Text
    """Its parts."""
    content: dict[Text, Any]
    """Its value on each axis that is searched."""
    score: Finite
    """What was maximised."""
    costs: Annotated[dict[Text, CostRecord], pydantic.Field(min_length=1)]
    """Of each quantity that is bounded."""
    id: Text
    """Of its point."""


def keeps(found: CandidateRecord, within: Mapping[str, float]) -> bool | None:
    """Return whether a candidate kept all bounds when it was measured; None where nobody knows.

    One that exceeds a bound does not keep them, whatever became of the others.
    """
    measured = {name: each.measured for name, each in found.costs.items()}
    if any(value is not None and value > within[name] for name, value in measured.items()):
        return False
    return None if None in measured.values() else True


def keeps_in_words(found: CandidateRecord, within: Mapping[str, float]) -> str:
    """Return what :func:`keeps` tells, as tables have it."""
    return {True: "yes", False: "no", None: MISSING}[keeps(found, within)]


class SearchRecord(RunRecord):
    """What ``search.json`` holds."""

    asked: SearchRequest
    identities: Annotated[dict[Text, Text], pydantic.Field(default_factory=dict)]
    """SHA-256 of the files of each estimator and of what scores, by its name; older searches have none."""
    generation: Annotated[int, pydantic.Field(ge=0)]
    """Generations that are done."""
    asked_for: int
    estimated: int
    """Estimates that were needed, and those that the memory did not have."""
    state: Text
    """Of the random numbers, as JSON."""
    population: Annotated[list[CandidateRecord], pydantic.Field(min_length=1)]
    front: list[CandidateRecord]
    winners: list[CandidateRecord]
    """The population, the best first; those with the highest score of all of at most their cost; and those
    that were chosen in the end.
    """

    @pydantic.model_validator(mode="after")
    def _of_one_search(self) -> SearchRecord:
        for found in (*self.population, *self.front, *self.winners):
            if found.costs.keys() != self.asked.within.keys():
                raise ValueError(
                    f"costs of {', '.join(found.costs)}, and bounds of {', '.join(self.asked.within)}"
                )
        return self


def holds_search(folder: Path) -> bool:
    """Return whether a search was written to a folder."""
    return (folder / FILE).is_file()


def read_search(folder: Path) -> SearchRecord:
    """Return the search in a folder.

    Raises
    ------
    InputError
        If the file is damaged.
    """
    return read_record(folder / FILE, SearchRecord)


def effort(record: SearchRecord) -> str:
    """Return how long a search was, and how many estimates it took."""
    asked = record.asked
    return (
        f"{number_of(record.generation, 'generation')} of {asked.population:,} in "
        f"{duration(round(record.spent_s))}: {record.asked_for:,} estimates by "
        f"{' and '.join(asked.estimators)}, {record.estimated:,} of them of candidates never seen"
    )


def kept(record: SearchRecord) -> str:
    """Return how many winners keep the bounds when they are measured again; empty where none was."""
    from scipy.stats import binomtest

    kept_or_not = (keeps(each, record.asked.within) for each in record.winners)
    told = [truth for truth in kept_or_not if truth is not None]
    if not told:
        return ""
    share = binomtest(sum(told), len(told)).proportion_ci(LEVEL, "wilson")
    return (
        f"{sum(told)} of {len(told)} winners keep the bounds when they are measured again "
        f"({sum(told) / len(told):.0%}, {LEVEL:.0%} interval {share.low:.0%} to {share.high:.0%})"
    )
