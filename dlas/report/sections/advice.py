"""What to try next, as far as a sweep's rows say it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from dlas.analysis.winners import Winner
from dlas.report.context import Context
from dlas.report.sections.highlights import Item
from dlas.rows.labels import points as counted

RETRIES = {
    "timeout": "give them more time under [limits], then",
    "failed": "read a reason and its log, mend it, then",
    "wrong": "do not use what computed them until it is mended; then",
}


def retries(context: Context, statuses: Counter[str]) -> Iterator[Item]:
    """Yield how to run points again that have no right answer."""
    folder = shlex.quote(context.folders[0]) if len(context.folders) == 1 else "FOLDER"
    for status, remedy in RETRIES.items():
        if statuses[status]:
            command = f"`dlas run STUDY --out {folder} --retry {status}`"
            yield f"{counted(statuses[status])} ended as {status}: {remedy} {command}.", None


def noise(context: Context) -> Iterator[Item]:
    """Yield where to look if measurements were disturbed."""
    noisy = int(context.noisy.sum())
    if noisy:
        yield f"{counted(noisy)} noisy: `dlas doctor` says what disturbs this machine.", None


def ties(best: list[Winner]) -> Iterator[Item]:
    """Yield how to tell points apart that tie."""
    tied = [winner for winner in best if winner.tie]
    if tied:
        yield (
            f"The fastest is a tie in {len(tied)} of {len(best)} settings: more repeats under [measure] may "
            "tell them apart.",
            tied[0].points[0],
        )


def untried(context: Context, best: list[Winner]) -> Iterator[Item]:
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
