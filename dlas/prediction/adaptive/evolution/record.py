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
    """What a search asked for.

    Attributes
    ----------
    study : str
        The study file's content.
    estimators : list of str
        Where costs are from.
    maximise : str
        Where scores are from.
    within : dict of str to float
        What is bounded, ``latency_s``, and the most that it may be.
    population, generations : int
    parents, mutation : float
    seed : int
    """

    study: Annotated[str, pydantic.Field(max_length=1 << 20)]
    estimators: Annotated[list[Text], pydantic.Field(min_length=1, max_length=100)]
    maximise: Text
    within: Annotated[dict[Text, Bound], pydantic.Field(min_length=1, max_length=100)]
    population: Annotated[int, pydantic.Field(ge=2, le=100_000)]
    generations: Annotated[int, pydantic.Field(ge=0, le=1_000_000)]
    parents: Annotated[float, pydantic.Field(gt=0, le=1)]
    mutation: Annotated[float, pydantic.Field(ge=0, le=1)]
    seed: Annotated[int, pydantic.Field(ge=0, lt=2**32)]


class CostRecord(Strict):
    """What a candidate costs.

    Attributes
    ----------
    value, high : float
        What was estimated, and the upper end of its interval.
    measured : float or None
        What was measured in the end.
    """

    value: Finite
    high: Finite
    measured: Finite | None = None


class FoundRecord(Strict):
    """A candidate that was found.

    Attributes
    ----------
    label : str
        Its parts.
    content : dict
        Its value on each axis that is searched.
    score : float
        What was maximised.
    costs : dict of str to CostRecord
        Of each quantity that is bounded.
    id : str
        Of its point.
    """

    label: Text
    content: dict[Text, Any]
    score: Finite
    costs: Annotated[dict[Text, CostRecord], pydantic.Field(min_length=1)]
    id: Text


def keeps(found: FoundRecord, within: Mapping[str, float]) -> bool | None:
    """Return whether a candidate kept all bounds when it was measured; None where nobody knows.

    One that exceeds a bound does not keep them, whatever became of the others.
    """
    measured = {name: each.measured for name, each in found.costs.items()}
    if any(value is not None and value > within[name] for name, value in measured.items()):
        return False
    return None if None in measured.values() else True


def keeps_in_words(found: FoundRecord, within: Mapping[str, float]) -> str:
    """Return what :func:`keeps` tells, as tables have it."""
    return {True: "yes", False: "no", None: MISSING}[keeps(found, within)]


class SearchRecord(RunRecord):
    """What ``search.json`` holds.

    Attributes
    ----------
    asked : SearchRequest
    generation : int
        Generations that are done.
    asked_for, estimated : int
        Estimates that were needed, and those that the memory did not have.
    state : str
        Of the random numbers, as JSON.
    population, front, winners : list of FoundRecord
        The population, the best first; those with the highest score of all of at most their cost;
        and those that were chosen in the end.
    """

    asked: SearchRequest
    generation: Annotated[int, pydantic.Field(ge=0)]
    asked_for: int
    estimated: int
    state: Text
    population: Annotated[list[FoundRecord], pydantic.Field(min_length=1)]
    front: list[FoundRecord]
    winners: list[FoundRecord]

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
