"""The report in short: what was fastest, what failed, what tuning changed, what to try next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from dlas.analysis.matching import SETTING, groups
from dlas.analysis.observations import OPEN
from dlas.analysis.observations.tuning_changes_the_best import tuning_gains_and_reorders
from dlas.analysis.winners import Times, Winner
from dlas.report.blocks import Block, Cell, Column, Line, Paragraph, Section, Table
from dlas.report.context import Context
from dlas.rows.labels import MISSING, factor, shortened
from dlas.rows.labels import points as counted
from dlas.rows.results import STATUSES

Item = tuple[str, int | None]
MOST_REASON = 100
RETRIES = {
    "timeout": "give them more time under [limits], then",
    "failed": "read a reason and its log, mend it, then",
    "wrong": "do not use what computed them until it is mended; then",
}


def section(context: Context) -> Section:
    """Return the fastest point of each setting, what stands out, and what to try next."""
    statuses = Counter(context.points["status"])
    ends = ", ".join(f"{statuses[status]:,} {status}" for status in STATUSES if statuses[status])
    lead = f"{counted(len(context.points))}: {ends}." if ends else "There are no rows yet."
    times = Times(context.points)
    best = [times.fastest(lines) for lines in groups(context.points, SETTING)]
    blocks: list[Block] = [_fastest(context, best)] if best else []
    if found := [*_failures(context), *_tuning(context), *_interaction(context)]:
        blocks.append(Paragraph("What stands out", found))
    if steps := [*_retries(context, statuses), *_noise(context), *_ties(best), *_untried(context, best)]:
        blocks.append(Paragraph("What to try next", steps))
    return Section("summary", "In short", lead, blocks)


def _fastest(context: Context, best: list[Winner]) -> Table:
    lines = [
        _line(context, setting.tolist(), winner)
        for setting, winner in zip(groups(context.points, SETTING), best, strict=True)
    ]
    group = "times the speed of the best"
    columns = [
        Column("setting"),
        Column("fastest"),
        Column("ms [95 % interval]", number=True),
        Column("untuned code", group, number=True),
        Column("runtime", group, number=True),
        Column("timed", number=True),
    ]
    caption = "The fastest point of each setting, whatever its network costs in accuracy."
    return Table("fastest", caption, columns, lines)


def _line(context: Context, setting: list[int], winner: Winner) -> Line:
    name, tried = Cell(context.setting(setting[0])), Cell(f"{winner.tried - winner.failed} of {winner.tried}")
    where = context.where(setting[0], SETTING)
    if not winner.points:
        nothing = [Cell(MISSING, style="muted")] * 3
        return Line([name, Cell("none has a time", style="bad"), *nothing, tried], where)
    point = winner.points[0]
    tie = f"tie with {len(winner.points) - 1} more" if winner.tie else ""
    called = context.name(point, ("compression", "algorithm", "compiler"))
    cells = [
        name,
        Cell(called, note=tie, point=point, style="best"),
        Cell(context.interval(point)),
        _against(context, setting, point, "untuned"),
        _against(context, setting, point, "runtime"),
        tried,
    ]
    return Line(cells, where)


def _against(context: Context, setting: list[int], point: int, tuning: str) -> Cell:
    """Return how many times as fast a point is as the fastest of a kind of compiler."""
    kinds = context.points["tuning"]
    others = [line for line in setting if context.timed[line] and kinds.iat[line] == tuning]
    if not others:
        return Cell(MISSING, style="muted")
    other = min(others, key=context.median_ms)
    return Cell(f"{factor(context.median_ms(other) / context.median_ms(point))}x", point=other)


# ---------------------------------------------------------------- what stands out


def _failures(context: Context) -> Iterator[Item]:
    bad = context.points[context.points["status"] != "ok"]
    if bad.empty:
        return
    reasons = bad["reason"].fillna("not told").map(lambda text: shortened(str(text), MOST_REASON))
    reason, count = Counter(reasons).most_common(1)[0]
    told = f"{counted(len(bad))} of {len(context.points):,} have no right answer in time. "
    told += f"The most frequent reason, {count} times: {reason}"
    yield told, int(reasons.index[(reasons == reason).argmax()])


def _tuning(context: Context) -> Iterator[Item]:
    names = ("Tuned code against untuned", "Tuning changed the best algorithm or compression")
    for name, claim in zip(names, tuning_gains_and_reorders(context.evidence), strict=True):
        if claim.verdict != OPEN:
            yield f"{name}: {claim.numbers}.", None


def _interaction(context: Context) -> Iterator[Item]:
    found = next((one for one in context.interactions if one.known), None)
    if found is not None:
        yield (
            f"Of all pairs of axes, {found.axes[0]} and {found.axes[1]} depend on each other most: "
            f"{100 * found.shares[2]:.1f} % of the variation of latency is explained by both together only "
            f"({counted(found.matched)} matched).",
            None,
        )


# ---------------------------------------------------------------- what to try next


def _retries(context: Context, statuses: Counter[str]) -> Iterator[Item]:
    folder = shlex.quote(context.folders[0]) if len(context.folders) == 1 else "FOLDER"
    for status, told in RETRIES.items():
        if statuses[status]:
            command = f"`dlas run STUDY --out {folder} --retry {status}`"
            yield f"{counted(statuses[status])} ended as {status}: {told} {command}.", None


def _noise(context: Context) -> Iterator[Item]:
    noisy = int(context.noisy.sum())
    if noisy:
        yield f"{counted(noisy)} noisy: `dlas doctor` says what disturbs this machine.", None


def _ties(best: list[Winner]) -> Iterator[Item]:
    tied = [winner for winner in best if winner.tie]
    if tied:
        yield (
            f"The fastest is a tie in {len(tied)} of {len(best)} settings: more repeats under [measure] may "
            "tell them apart.",
            tied[0].points[0],
        )


def _untried(context: Context, best: list[Winner]) -> Iterator[Item]:
    """Say where untuned code is the fastest that there is."""
    kinds = context.points["tuning"]
    if not (kinds == "tuned").any() and (kinds == "untuned").any():
        yield "Nothing here was tuned: add a compiler that searches to the study's compiler axis.", None
        return
    untuned = [
        winner.points[0] for winner in best if winner.points and kinds.iat[winner.points[0]] == "untuned"
    ]
    if untuned:
        name = context.name(untuned[0], ("model", "compression", "algorithm"))
        yield (
            f"In {len(untuned)} of {len(best)} settings untuned code is the fastest, e.g. {name}: tune it, "
            "or look at why tuning lost.",
            untuned[0],
        )
