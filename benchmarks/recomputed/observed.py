"""The numbers that observations rest on, as a README quotes them."""

from __future__ import annotations

from functools import cache

from benchmarks.recomputed.kept import points, slow
from benchmarks.recomputed.markdown import numbers
from dlas.analysis.observations import observe
from dlas.analysis.observations.evidence import Evidence


@cache
def _numbers(folder: str) -> dict[str, list[str]]:
    """Return by observation the numbers of its claims, in their order."""
    return {
        found.observation.number: numbers(" ".join(claim.numbers for claim in found.claims))
        for found in observe(Evidence(points(folder)))
    }


@slow
def number(folder: str, observation: str, place: str) -> float:
    """Return a number that an observation on a folder's rows rests on, by its place."""
    return float(_numbers(folder)[observation][int(place)])
