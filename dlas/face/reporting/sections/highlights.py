"""What stands out in a sweep, in sentences: the fastest, who wins where, dependences, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dlas.analysis.matching import SETTING, groups
from dlas.analysis.roles import DENSE
from dlas.analysis.winners import Times, Winner
from dlas.face.reporting.context import Context
from dlas.sweep.rows.labels import factor, listed, shortened
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.reasons import alike
from dlas.sweep.rows.results import UNSTABLE

Item = tuple[str, int | None]
CHOICE = ("compression", "algorithm", "compiler")
MOST_REASON = 100
MOST_NAMED = 4
"""Most cases or points that a sentence names; more are counted."""
FEWEST = 4
"""Least number of comparisons that say whether an order depends on something."""
ENDINGS = {
    "failed": "failed",
    "timeout": "took too long",
    "wrong": "computed wrong results",
    "unsupported": "not supported",
}
PLURALS = {"batch": "batch sizes", "hardware": "devices"}


def left_out(context: Context, lines: Iterable[int], axes: Sequence[str] = CHOICE) -> str:
    """Return which points a sentence leaves out as unstable, as its end; empty where it leaves out none.

    Parameters
    ----------
    lines : iterable of int
        The points that it is about, stable or not.
    axes : sequence of str
        Those that name them.
    """
    unstable = [line for line in lines if context.status(line) == UNSTABLE]
    names = list(dict.fromkeys(context.name(line, axes) for line in unstable))
    if not names:
        return ""
    which = listed(names) if len(names) <= MOST_NAMED else counted(len(unstable))
    return f" (left out as unstable: {which})"


def fastest(context: Context, best: Sequence[Winner]) -> Iterator[Item]:
    """Yield what is the fastest in each setting."""
    won = [winner.points[0] for winner in best if winner.points]
    without = left_out(context, range(len(context.points)))
    if len(won) == 1:
        name = context.name(won[0], CHOICE)
        yield f"The fastest takes {context.ms_text(won[0])} ms: {name}{without}.", won[0]
    elif won:
        names = {line: context.name(line, CHOICE) for line in won}
        yield f"The fastest: {_who(context, names)}{without}.", None


def against_runtimes(context: Context) -> Iterator[Item]:
    """Yield the speed of the fastest code compiled here over the fastest runtime, over all settings."""
    runtime = (context.points["tuning"] == "runtime").to_numpy(dtype=bool)
    times = Times(context.points)
    ratios, named, compared = [], -1, list[int]()
    for lines in groups(context.points, SETTING):
        mine, theirs = (times.fastest(lines[chosen[lines]]).points for chosen in (~runtime, runtime))
        if mine and theirs:
            ratios.append(context.median_ms(theirs[0]) / context.median_ms(mine[0]))
            named = theirs[0]
            compared += lines.tolist()
    without = left_out(context, compared)
    if len(ratios) == 1:
        beaten = f"the fastest runtime, {context.value(named, 'compiler')}"
        yield (
            f"The fastest code compiled here is {factor(ratios[0])} times as fast as {beaten}{without}.",
            named,
        )
    elif ratios:
        span = f"{factor(min(ratios))} to {factor(max(ratios))} times as fast as the fastest runtime"
        faster = sum(ratio > 1 for ratio in ratios)
        share = f"all {faster}" if faster == len(ratios) else f"{faster} of {len(ratios)}"
        text = f"The fastest code compiled here is {span}: faster for {share} {cases(context)}{without}."
        yield text, None


def winning_algorithms(context: Context) -> Iterator[Item]:
    """Yield which algorithm wins for which network, or with one network for which compression."""
    own = np.flatnonzero(context.timed & (context.points["tuning"] != "runtime").to_numpy(dtype=bool))
    points, times = context.points.iloc[own], Times(context.points)
    if points["algorithm"].nunique() < 2:
        return
    inside = groups(points, SETTING)
    axes = SETTING if len(inside) > 1 else ("compression_name",)
    best = [times.fastest(own[lines]).points[0] for lines in groups(points, axes)]
    if len(best) < 2:
        return
    winners = {line: context.value(line, "algorithm") for line in best}
    techniques = {line: str(context.points["compression_name"].iat[line]) for line in best}
    called = {line: "the dense network" if name == DENSE else name for line, name in techniques.items()}
    where = called if axes != SETTING else None
    here = np.flatnonzero(context.points["tuning"] != "runtime").tolist()
    won = f"{_who(context, winners, where)}{left_out(context, here)}"
    yield f"The fastest of the algorithms compiled here: {won}.", None


def _who(context: Context, winners: dict[int, str], where: dict[int, str] | None = None) -> str:
    """Return ``a wins for x and y, b for z``, of the winner and the name of the case by line."""
    places: dict[str, list[str]] = {}
    for line, name in winners.items():
        places.setdefault(name, []).append(where[line] if where else context.setting(line))
    ordered = sorted(places.items(), key=lambda item: -len(item[1]))
    pieces = []
    for name, of in ordered[:MOST_NAMED]:
        every = "all " if len(of) == len(winners) else ""
        pieces.append(
            f"{name} for {every}{len(of)} {cases(context)}"
            if (every or len(of) > MOST_NAMED) and not where
            else f"{name} for {listed(of)}"
        )
    rest = sum(len(of) for _, of in ordered[MOST_NAMED:])
    return "; ".join([*pieces, f"others for {rest} more"] if rest else pieces)


def cases(context: Context) -> str:
    """Return what the settings are: networks, batch sizes, devices, or settings where several vary."""
    varying = {axis for axis in SETTING if axis in context.varying}
    if varying <= {"model", "dataset"}:
        return "networks"
    if varying == {"batch"}:
        return "batch sizes"
    return "devices" if varying <= {"hardware", "machine"} else "settings"


def dependence(context: Context) -> Iterator[Item]:
    """Yield the choice whose best value depends most on another axis."""
    for ranking in context.rankings:
        if ranking.flipped and ranking.kept + ranking.flipped >= FEWEST:
            plural, along = (PLURALS.get(name, f"{name}s") for name in (ranking.ranked, ranking.along))
            yield (
                f"Which of two {plural} is faster depends on the {ranking.along}: between two {along}, their "
                f"order changes in {ranking.flipped} of {ranking.compared} comparisons"
                f"{left_out(context, range(len(context.points)))}.",
                None,
            )
            return


def failures(context: Context) -> Iterator[Item]:
    """Yield how points without a time ended, and the most frequent reason."""
    bad = context.points[context.points["status"] != "ok"]
    if bad.empty:
        return
    ends = Counter(bad["status"])
    told = ", ".join(f"{count} {ENDINGS.get(status, status)}" for status, count in ends.most_common())
    reasons = bad["reason"].fillna("unknown").astype(str)
    reasons = reasons.map(alike(reasons)).map(lambda text: shortened(text, MOST_REASON))
    reason, count = Counter(reasons).most_common(1)[0]
    text = f"{counted(len(bad))} of {len(context.points):,} without a result: {told}. "
    first = "The reason of one" if len(bad) > 1 else "The reason"
    text += f"The most frequent reason, {count} times: {reason}" if count > 1 else f"{first}: {reason}"
    yield text, int(reasons.index[reasons.tolist().index(reason)])
