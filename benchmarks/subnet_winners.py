"""Do winners of searches keep their bounds?  ``python -m benchmarks.subnet_winners SEARCH... --rows ROWS``.

The best of each folder of ``dlas search`` are measured, each right after a reference network, one of the
rows that the predictor was fitted to whose times are nearest to the bound.  Dividing by how much slower it is
now than in the rows takes out that the machine has changed.  The share that keeps its bound stands by the
margin between estimate and bound, beside the score that the margin costs, in a table and, with ``--figures``,
in a figure.  Interrupted, the same command goes on.

``--out`` keeps what the tables rest on: ``searches.json``, the bounds, estimates and estimators' digests,
and ``results.jsonl``, the rows, each winner after its reference.  ``--kept`` prints the tables of a folder.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
from scipy.stats import binomtest

from benchmarks.subnet_kept import KeptSearch, KeptWinner, Outcome, keep, read_kept, seconds
from dlas.bench.store import toml
from dlas.face.reporting.charts import theme
from dlas.face.reporting.files import INK, PAPER, WIDTH, write_figure
from dlas.prediction.adaptive.evolution.record import LEVEL, SearchRecord, read_search
from dlas.prediction.adaptive.evolution.space import StudySpace
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import complete_lines, results_file
from dlas.sweep.rows.results import FILE, Row, read_rows
from dlas.sweep.study.study import Study

MARGINS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
REFERENCES = 5
"""Networks that take turns as the reference of a search, for each was measured with an error itself."""


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("searches", nargs="*", type=Path)
    parser.add_argument("--rows", type=Path, help="what the predictor was fitted to")
    parser.add_argument("--kept", type=Path, help="a folder of an earlier call: nothing is measured")
    parser.add_argument("--out", type=Path, default=Path("results/winners"))
    parser.add_argument("--each", type=int, default=10, help="winners of a search")
    parser.add_argument("--figures", type=Path, help="a folder for the figure of shares by margin")
    given = parser.parse_args()
    if given.kept is None:
        if not given.searches or given.rows is None:
            parser.error("give searches and --rows, or --kept")
        measure(given.searches, given.rows, given.out, given.each)
    searches, outcomes = read_kept(given.kept or given.out)
    print_shares(outcomes)
    found = margins(outcomes, [(each.value, each.score) for each in searches])
    print_margins(found)
    if given.figures is not None:
        draw(found, given.figures)


def measure(folders: Sequence[Path], rows: Path, out: Path, each: int) -> None:
    """Measure the best of searches, and keep them with their estimates in ``out``."""
    known = [row for row in read_rows(rows) if row.timed]
    searches, lines = [], []
    with Session.open() as session:
        for place, folder in enumerate(folders):
            search, found = measured(read_search(folder), known, out / str(place), each, session)
            searches.append(search)
            lines += found
            print(f"search {place + 1} of {len(folders)}: {len(lines) // 2} winners measured", flush=True)
    keep(searches, lines, out)


def measured(
    record: SearchRecord, known: Sequence[Row], out: Path, each: int, session: Session
) -> tuple[KeptSearch, list[bytes]]:
    """Measure the best of a search, a reference before each, in folders of their own.

    Returns
    -------
    KeptSearch
        With the winners that have a time, as their references have.
    list of bytes
        The rows of these, each winner's after its reference's.
    """
    space = StudySpace.of(Study.of(toml.parse(record.asked.study)))
    ((quantity, bound),) = record.asked.within.items()
    usual = sorted(known, key=lambda row: abs(seconds(row, quantity) - bound))[:REFERENCES]
    drawn = space.content(space.draw(np.random.default_rng(0)))
    best = {found.id: found for found in record.population}
    winners, lines = [], []
    for place, found in enumerate(list(best.values())[:each]):
        folder, like = out / found.id, usual[place % len(usual)]
        own = {axis: getattr(like, axis) for axis in drawn if axis in ("dataset", "model")}
        reference = space.point(space.of_content({**drawn, **own}))
        winner = space.point(space.of_content(found.content))
        for name, point in (("reference", reference), ("winner", winner)):
            if not (folder / name / FILE).is_file():
                session.check(space.small, folder / name, [point])
                session.measure(space.small, [point], folder / name)
        pair = timed_lines(folder)
        if len(pair) != len(("reference", "winner")):
            print(f"{folder}: no time")
            continue
        lines += pair
        cost, before = found.costs[quantity], seconds(like, quantity)
        winners.append(
            KeptWinner(
                id=found.id,
                reference=reference.id,
                estimated=cost.value,
                high=cost.high,
                score=found.score,
                before=before,
            )
        )
    first = record.population[0]
    search = KeptSearch(
        quantity=quantity,
        bound=bound,
        estimators=record.identities,
        value=first.costs[quantity].value,
        score=first.score,
        winners=winners,
    )
    return search, lines


def timed_lines(folder: Path) -> list[bytes]:
    """Return the lines of the rows that have a time: the reference's, then the winner's."""
    lines = (line for name in ("reference", "winner") for line in complete_lines(results_file(folder / name)))
    return [line for line in lines if Row.parse(line).timed]


def wilson(kept: Sequence[bool]) -> tuple[float, float]:
    """Return Wilson's interval of the share that kept their bound."""
    low, high = binomtest(sum(kept), len(kept)).proportion_ci(LEVEL, "wilson")
    return float(low), float(high)


def share(kept: Sequence[bool]) -> str:
    """Return how many kept their bound, and Wilson's interval of the share."""
    low, high = wilson(kept)
    return f"{sum(kept)} of {len(kept)} | {sum(kept) / len(kept):.0%} ({low:.0%} to {high:.0%})"


def print_shares(outcomes: Sequence[Outcome]) -> None:
    """Print how many winners keep each bound, and how far they are off."""
    disturbed = sum(each.noisy for each in outcomes)
    print(f"\n{len(outcomes)} winners were measured, {disturbed} of them disturbed.")
    print("\n| at most, ms | measured over estimated, median | kept as measured |  | kept scaled |  |")
    print("|---|---|---|---|---|---|")
    bounds: list[float | None] = [*sorted({each.bound for each in outcomes}), None]
    for bound in bounds:
        own = [each for each in outcomes if bound in (each.bound, None)]
        ratio = statistics.median(each.scaled / each.estimated for each in own)
        raw, scaled = (
            share([value <= each.bound for value, each in zip(values, own, strict=True)])
            for values in ([each.measured for each in own], [each.scaled for each in own])
        )
        print(f"| {'all' if bound is None else f'{1e3 * bound:.4g}'} | {ratio:.3f} | {raw} | {scaled} |")


@dataclass(frozen=True)
class Margin:
    """What happens if estimates lie below the bound by a margin."""

    margin: float
    """The bound over the estimate, less 1."""
    kept: list[bool]
    """Whether each winner keeps its bound."""
    given_up: float
    """What the best score falls by; not a number with a single search."""
    own: bool
    """Whether it is the margin of the predictor's intervals."""


def margins(outcomes: Sequence[Outcome], best: Sequence[tuple[float, float]]) -> list[Margin]:
    """Return who keeps its bound with each margin, and the score that costs.

    Winners lie at their bounds, less the margin, so that one keeps it if its time is longer than its
    estimate by no more than the margin.

    Parameters
    ----------
    best : sequence of (float, float)
        The estimate and the score of the best of each search; the best score at any latency lies between.
    """
    values, scores = (np.array(column) for column in zip(*sorted(best), strict=True))
    own = statistics.median(each.high / each.estimated for each in outcomes) - 1
    found = []
    for margin in sorted((*MARGINS, own)):
        kept = [each.scaled <= each.estimated * (1 + margin) for each in outcomes]
        given_up = scores[1:] - np.interp(values[1:] / (1 + margin), values, scores)
        found.append(
            Margin(margin, kept, float(given_up.mean()) if len(given_up) else math.nan, margin == own)
        )
    return found


def print_margins(found: Sequence[Margin]) -> None:
    """Print the share that keeps its bound, and the score given up, by margin."""
    (own,) = (each.margin for each in found if each.own)
    print(f"\nThe interval's margin is {own:.1%}.\n")
    print("| margin | keep their bound |  | score given up |\n|---|---|---|---|")
    for each in found:
        told = "" if math.isnan(each.given_up) else f"{each.given_up:.5f}"
        print(f"| {each.margin:.1%} | {share(each.kept)} | {told} |")


def draw(found: Sequence[Margin], to: Path) -> None:
    """Write the figure of the shares, with their intervals, and of the score given up, by margin."""
    told = not math.isnan(found[0].given_up)
    rows = []
    for each in found:
        low, high = wilson(each.kept)
        row = {"margin": each.margin, "kept": sum(each.kept) / len(each.kept), "low": low, "high": high}
        rows.append(row | ({"given": each.given_up} if told else {}))
    chart = alt.Chart(alt.Data(values=rows), width=WIDTH)
    margin = alt.X("margin:Q", title="margin between estimate and bound", axis=alt.Axis(format="%"))
    shares = alt.Y("kept:Q", title="share that keeps its bound", axis=alt.Axis(format="%"))
    kept = chart.mark_line(point=True).encode(margin, shares)
    between = chart.mark_rule().encode(margin, alt.Y("low:Q"), alt.Y2("high:Q"))
    given = chart.mark_line(point=True).encode(margin, alt.Y("given:Q", title="score given up"))
    panels = [between + kept, given] if told else [between + kept]
    to.mkdir(parents=True, exist_ok=True)
    spec = alt.hconcat(*panels).to_dict()
    write_figure({**spec, "config": {**theme(INK), "background": PAPER}}, to / "winners-by-margin")


if __name__ == "__main__":
    main()
