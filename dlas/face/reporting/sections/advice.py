"""What to try next, from the rows of a sweep."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from dlas.analysis.winners import Winner
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.highlights import Item
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import UNSTABLE

RETRIES = {
    UNSTABLE: "let the machine rest, then measure them again with",
    "timeout": "raise their limit under [limits], then run",
    "failed": "read a reason and its log, fix the cause, then run",
    "wrong": "do not use the part that computed them until it is fixed; then run",
}


def retries(context: Context, statuses: Counter[str]) -> Iterator[Item]:
    """Yield how to run points again that failed or were unstable."""
    folder = shlex.quote(context.folders[0]) if len(context.folders) == 1 else "FOLDER"
    for status, remedy in RETRIES.items():
        if statuses[status]:
            command = f"`dlas run {folder} --retry {status}`"
            yield f"{counted(statuses[status])} ended as {status}: {remedy} {command}.", None


def noise(context: Context) -> Iterator[Item]:
    """Yield what to do about noisy measurements."""
    noisy = int(context.noisy.sum())
    if noisy:
        yield f"{counted(noisy)} noisy: `dlas doctor` says what disturbs this machine.", None


def ties(best: list[Winner]) -> Iterator[Item]:
    """Yield how to resolve ties."""
    tied = [winner for winner in best if winner.tie]
    if tied:
        yield (
            f"The fastest is a tie in {len(tied)} of {len(best)} settings: more repeats under [measure] may "
            "resolve it.",
            tied[0].points[0],
        )


def untried(context: Context, best: list[Winner]) -> Iterator[Item]:
    """Yield where untuned code is the fastest."""
    kinds = context.points["tuning"]
    if not (kinds == "tuned").any() and (kinds == "untuned").any():
        yield "No point was tuned: add a compiler that searches to the study's compiler axis.", None
        return
    untuned = [
        winner.points[0] for winner in best if winner.points and kinds.iat[winner.points[0]] == "untuned"
    ]
    if untuned:
        name = context.name(untuned[0], ("model", "compression", "algorithm"))
        yield (
            f"In {len(untuned)} of {len(best)} settings untuned code is the fastest, e.g. {name}: tune it, "
            "or find out why tuned code is slower.",
            untuned[0],
        )
