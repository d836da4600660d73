"""What the checks of the paper's observations share: claims, their verdicts, and evidence from rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dlas.analysis.correlations import correlations
from dlas.analysis.matching import SETTING, groups, timed
from dlas.analysis.speedups import speedups
from dlas.analysis.winners import Times
from dlas.sweep.rows.columns import FINE_TUNING
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import STATUSES

HOLDS, FAILS, OPEN = VERDICTS = ("holds", "does not hold", "not enough data")
SAME_SETTING = list(SETTING)
LAYOUT = "algorithm.layout"
FACTS = (
    "dataset_name",
    "compression_name",
    "kind",
    "accuracy",
    "validation_accuracy",
    "test_images",
    "parameters",
    "nonzeros",
    "macs",
    "effective_macs",
    "model_bytes",
    "csr_bytes",
    "ratio",
    "bits",
    FINE_TUNING,
    "line",
)
"""Facts of a network, from the first of its points that has them."""
MOST_LOSS = 0.05
"""Of several levels of a technique, the highest that loses at most this accuracy is compared."""


@dataclass(frozen=True)
class Claim:
    """One claim of an observation."""

    text: str
    verdict: str
    """One of :data:`VERDICTS`."""
    numbers: str = ""
    """The numbers behind the verdict."""
    missing: str = ""
    """The points that are needed, where the verdict is open."""
    cases: int = 0
    """How many settings, pairs or networks the verdict rests on."""


PAPER_ALGORITHMS = ("direct", "gemm", "spatial_pack", "csr_direct", "csr_gemm", "csr_spatial_pack")
"""The convolutions of the paper's section 3.4, dense and on compressed rows, which work in NCHW."""


class Evidence:
    """Points, with tables that several checks use, each computed once.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.
    """

    def __init__(self, points: pd.DataFrame) -> None:
        self.points = points

    @cached_property
    def of_paper(self) -> Evidence:
        """The points of :data:`PAPER_ALGORITHMS` in NCHW, and of runtimes, which choose by themselves."""
        points = self.points
        chosen = points["algorithm_name"].isin(PAPER_ALGORITHMS)
        if LAYOUT in points:
            chosen &= points[LAYOUT].fillna("nchw") == "nchw"
        chosen |= points["tuning"] == "runtime"
        return self if chosen.all() else Evidence(points[chosen].reset_index(drop=True))

    @cached_property
    def all_speedups(self) -> pd.DataFrame:
        """The speed-ups of the points by :func:`dlas.analysis.speedups.speedups`."""
        return speedups(self.points)

    @cached_property
    def speedups(self) -> pd.DataFrame:
        """The speed-ups without those of runtimes."""
        return self.all_speedups[self.all_speedups["tuning"] != "runtime"]

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """The correlations of the points by :func:`dlas.analysis.correlations.correlations`."""
        return correlations(self.points)


@dataclass(frozen=True)
class Observation:
    """One of the paper's observations."""

    number: str
    """The paper's number, I to XIII."""
    statement: str
    needs: str
    """The observation, and the points that are needed to check it."""
    check: Callable[[Evidence], list[Claim]]
    """Maps :class:`Evidence` to the claims of the observation."""


def open_claim(text: str, points: pd.DataFrame, needed: Mapping[str, pd.Series], others: str = "") -> Claim:
    """Return a claim that cannot be decided, and the points that are missing.

    Parameters
    ----------
    needed : mapping of str to Series of bool
        Which lines are of each kind that is needed, by its name.
    others : str
        What is missing where there are points of every kind.
    """
    pieces = []
    for name, chosen in needed.items():
        present = points[chosen]
        if present.empty:
            pieces.append(f"no points: {name}")
        elif not timed(present).any():
            ends = present["status"].value_counts()
            counts = ", ".join(f"{ends[status]} {status}" for status in STATUSES if status in ends)
            pieces.append(f"no times: {name} ({counts})")
    return Claim(text, OPEN, missing="; ".join(pieces) or others)


def by_algorithms(points: pd.DataFrame, kinds: Sequence[str] = ()) -> dict[str, pd.Series]:
    """Return which lines have an algorithm, by kind of compression; runtimes choose by themselves."""
    own = points["tuning"] != "runtime"
    if not kinds:
        return {"of any algorithm (runtimes choose by themselves)": own}
    return {f"{kind}, of any algorithm": own & (points["kind"] == kind) for kind in kinds}


def majority(text: str, wins: int, total: int, numbers: str) -> Claim:
    """Return a claim that holds if it is true in more than half of the cases."""
    return Claim(text, HOLDS if 2 * wins > total else FAILS, numbers, cases=total)


def orders(pairs: pd.DataFrame) -> str:
    """Return how often the second of a pair is faster, tied and slower."""
    faster, tied = int((pairs["order"] > 0).sum()), int((pairs["order"] == 0).sum())
    return f"faster in {faster} of {len(pairs)}, {tied} tied, {len(pairs) - faster - tied} slower"


def alone(points: pd.DataFrame, chosen: pd.Series, same: Sequence[str], pairs: pd.DataFrame) -> str:
    """Return the number of groups with chosen points but without a pair, as the end of a sentence."""
    count = len(groups(points[chosen], same)) - len(pairs)
    return f"; {count} more without a time on both sides" if count else ""


def wins(
    text: str, points: pd.DataFrame, chosen: pd.Series, primitive: str, same: Sequence[str], name: str
) -> Claim:
    """Return whether an algorithm is the fastest in most competitions among ``chosen`` points.

    Parameters
    ----------
    primitive : str
        The algorithm; versions of it on other data formats compete for it.
    same : sequence of str
        Columns in which the points of a competition are equal.
    name : str
        The name of the chosen points.
    """
    times, primitives = Times(points), points["primitive"].astype(str).to_numpy()
    lines = np.flatnonzero(chosen)
    won = tied = total = failed = 0
    for inside in groups(points.iloc[lines], same):
        group = lines[inside]
        best = times.fastest(group)
        if not {primitive} < set(primitives[group]) or not best.points:
            continue
        fastest = set(primitives[list(best.points)])
        total, failed = total + 1, failed + best.failed
        won, tied = won + (fastest == {primitive}), tied + (primitive in fastest and fastest != {primitive})
    if not total:
        own = chosen & (points["primitive"] == primitive)
        needed = {name: chosen, f"{name}, {primitive}": own}
        return open_claim(text, points, needed, f"another algorithm beside {primitive} in the same setting")
    numbers = f"fastest in {won} of {total} competitions, tied in {tied}"
    return majority(text, won, total, numbers + (f"; {counted(failed)} without a time" if failed else ""))


def networks(points: pd.DataFrame) -> pd.DataFrame:
    """Return one line a network: a model on a dataset under a compression, from one seed.

    ``line`` is the position of its first point in ``points``.
    """
    same = ["dataset", "model", "compression", "seed"]
    filled = points.assign(accuracy=points["accuracy"].fillna(points["compiled_accuracy"]))
    grouped = filled.assign(line=np.arange(len(filled))).groupby(same, dropna=False, sort=False)
    return grouped[list(FACTS)].first().reset_index()


def losses(points: pd.DataFrame) -> pd.DataFrame:
    """Return the compressed networks with their loss of accuracy against the dense network."""
    every = networks(points)
    dense = every[every["kind"] == "dense"].set_index(["dataset", "model", "seed"])["accuracy"]
    compressed = every[every["kind"] != "dense"].join(dense.rename("dense"), on=["dataset", "model", "seed"])
    return compressed.assign(loss=compressed["dense"] - compressed["accuracy"])


def chosen_levels(points: pd.DataFrame) -> pd.DataFrame:
    """Return one level of each technique: the most compressed that loses at most :data:`MOST_LOSS`.

    Where every level loses more, it is the level that loses least, then the least compressed.
    Networks whose accuracy is unknown have none: their levels follow from nothing.
    """
    compressed = losses(points).dropna(subset=["loss"])
    inside = (compressed["loss"] <= MOST_LOSS).to_numpy(dtype=bool)
    rank = np.where(inside, -compressed["ratio"].fillna(0), compressed["loss"])
    ordered = compressed.assign(rank=rank, outside=~inside).sort_values(
        ["outside", "rank", "ratio"], kind="stable"
    )
    return ordered.drop_duplicates(["dataset", "model", "seed", "compression_name"]).sort_index()
