"""What do searches find by tables, predictors, measuring?  ``python -m benchmarks.subnet_search STUDY``.

For each space and bound the study's subnetworks are searched with each estimator, ``NAME=PLACE`` as for
``dlas search --estimator``; those that estimate are also tried without a memory of what they told.  What was
found is told again by ``--judge``, such as a table or ``measure``.  ("The OFA latency predictor", Figure 8)
``--out`` keeps each line in ``searches.jsonl``: bound, estimator and digest, what was found and its costs.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlas.networks.subnets.written import SPACES
from dlas.prediction.adaptive.evolution.estimators import (
    MEASURE,
    Costs,
    Measurement,
    Scores,
    costs_of,
    scores_of,
)
from dlas.prediction.adaptive.evolution.evolution import (
    EvolutionarySearch,
    Individual,
    Judge,
    Memory,
    Settings,
)
from dlas.prediction.adaptive.evolution.identities import identities
from dlas.prediction.adaptive.evolution.space import Candidate, StudySpace
from dlas.prediction.adaptive.evolution.strategy import MEASURED, judge_of
from dlas.stack.types import Floats
from dlas.sweep.engine.session import Session
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

TARGET = "latency_s"
KEPT = "searches.jsonl"


@dataclass
class Counted:
    """A judge of candidates, and how many it was asked for."""

    judge: Judge[Candidate]
    """What :func:`dlas.prediction.adaptive.evolution.strategy.judge_of` returned."""
    asked: int = field(default=0, init=False)

    def __call__(self, candidates: Sequence[Candidate]) -> Sequence[Individual[Candidate]]:
        """Return what candidates are worth."""
        self.asked += len(candidates)
        return self.judge(candidates)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("--maximise", required=True, help="as for `dlas search`")
    parser.add_argument("--estimators", nargs="+", required=True, metavar="NAME=PLACE")
    parser.add_argument("--bounds", nargs="+", type=float, required=True, help="the most latency, s")
    parser.add_argument("--judge", help="a predictor, a table or `measure`")
    parser.add_argument("--spaces", nargs="+", choices=SPACES, default=SPACES[1:])
    parser.add_argument("--sizes", nargs="+", type=int, help="of images, instead of the study's")
    parser.add_argument("--population", type=int, default=100)
    parser.add_argument("--generations", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("results/searches"), help="for what is measured")
    given = parser.parse_args()
    estimators = dict(each.partition("=")[::2] for each in given.estimators)
    settings = Settings(population=given.population, generations=given.generations)
    print(
        "| space | at most, ms | estimator | score | estimated, ms | judged, ms | s | asked for | estimated |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with Session.open() as session:
        for name in given.spaces:
            space = space_of(given.study, name, given.sizes)
            scores = scores_of(given.maximise, space, session)
            for bound in given.bounds:
                for line in lines(space, bound, estimators, scores, settings, given, session):
                    print(f"| {name} | {1e3 * bound:.3g} | {line} |", flush=True)


def space_of(study: Path, name: str, sizes: Sequence[int] | None) -> StudySpace:
    """Return the space of a study, its subnetworks drawn from another one."""
    raw = tomllib.loads(study.read_text(encoding="utf-8"))
    raw["axes"]["model"] = [{**each, "space": name} for each in raw["axes"]["model"]]
    if sizes is not None:
        raw["axes"]["dataset"] = [{**each, "size": sizes} for each in raw["axes"]["dataset"]]
    return StudySpace.of(Study.of(raw))


def lines(
    space: StudySpace,
    bound: float,
    estimators: Mapping[str, str],
    scores: Scores,
    settings: Settings,
    given: argparse.Namespace,
    session: Session,
) -> Iterator[str]:
    """Yield the cells of each estimator, with a memory and without."""
    for name, place in estimators.items():
        costs = measuring(costs_of([place], space, {TARGET: bound}, session)[TARGET], space, given, session)
        for remembers in (True,) if place == MEASURE else (True, False):
            judge = Counted(judge_of(space, {TARGET: costs}, {TARGET: bound}, scores))
            start = time.perf_counter()
            memory = Memory(judge)
            evolution: EvolutionarySearch[Candidate] = EvolutionarySearch(
                space, memory if remembers else judge, settings
            )
            evolution.start()
            while evolution.population and evolution.generation < settings.generations:
                evolution.advance()
            spent = time.perf_counter() - start
            told = name if remembers else f"{name}, without memory"
            asked = memory.asked if remembers else judge.asked
            found = evolution.population[0] if evolution.population else None
            again = judged(space, found.candidate, bound, given, session) if found else ""
            kept = {"study": space.study.toml(), "estimator": told, "judged_ms": again, "spent_s": spent}
            kept |= {"asked_for": asked, "estimated": judge.asked, "within": {TARGET: bound}}
            kept |= {"identities": identities([place, given.maximise])}
            keep_line(given.out, kept, space, found)
            if found is None:
                nearest = evolution.nearest
                least = "" if nearest is None else f"{1e3 * nearest.costs[0].value:.4g}"
                yield f"{told} | nothing | {least} |  | {spent:.1f} | {asked:,} | {judge.asked:,}"
                continue
            yield (
                f"{told} | {found.score:.4f} | {1e3 * found.costs[0].value:.4g} | {again} | {spent:.1f} | "
                f"{asked:,} | {judge.asked:,}"
            )


def keep_line(
    folder: Path, line: Mapping[str, Any], space: StudySpace, found: Individual[Candidate] | None
) -> None:
    """Add what a line of the table rests on, and what was found, to what is kept."""
    kept = dict(line)
    if found is not None:
        (cost,) = found.costs
        kept |= {"id": space.point(found.candidate).id, "content": space.content(found.candidate)}
        kept |= {"score": found.score, "value": cost.value, "high": cost.high}
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / KEPT).open("a", encoding="utf-8") as file:
        file.write(json.dumps(kept) + "\n")


def measuring(costs: Costs, space: StudySpace, given: argparse.Namespace, session: Session) -> Costs:
    """Return costs; those that have to be measured are, when they are asked for."""
    if not isinstance(costs, Measurement):
        return costs

    def measured(points: Sequence[Point]) -> tuple[Floats, Floats]:
        rows = session.measure(space.small, points, given.out / MEASURED)
        costs.rows.update({row.id: row for row in rows})
        return costs(points)

    return measured


def judged(
    space: StudySpace, found: Candidate, bound: float, given: argparse.Namespace, session: Session
) -> str:
    """Return the milliseconds that the judge tells of what was found; empty without one."""
    if given.judge is None:
        return ""
    costs = measuring(costs_of([given.judge], space, {TARGET: bound}, session)[TARGET], space, given, session)
    value, _ = costs([space.point(found)])
    return f"{1e3 * float(np.asarray(value)[0]):.4g}"


if __name__ == "__main__":
    main()
