"""What papers report beside what is measured here: met, missed, contradicted, or not to be had here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.findings.written import LOST, RECOMPUTED, Number

MET, MISSED, OPPOSITE, NONE = "met", "missed", "**contradicted**", "open"
VERDICTS = (MET, MISSED, OPPOSITE, NONE)


@dataclass(frozen=True)
class Headline:
    """A figure of a paper and what is found here."""

    paper: str
    place: str
    """Its section, table or figure."""
    theirs: str
    """What the paper reports."""
    ours: str
    verdict: str
    """One of :data:`VERDICTS`."""
    command: str
    """What computes ours from rows."""
    basis: Sequence[Number] = ()
    """The numbers in ``ours``."""

    @property
    def rests_on(self) -> str:
        """What the weakest of the numbers rests on."""
        bases = {number.basis for number in self.basis}
        if not bases:
            return "-"
        return LOST if LOST in bases else next(iter(sorted(bases - {RECOMPUTED})), RECOMPUTED)


def verdict_of(reached: bool, otherwise: str = MISSED) -> str:
    """Return that a figure is met if it is reached."""
    return MET if reached else otherwise


def table(headlines: Sequence[Headline]) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| paper | where | it reports | here | verdict | rests on | command |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in headlines:
        command = f"`{each.command}`" if each.command else "-"
        cells = (
            each.paper,
            each.place,
            each.theirs,
            each.ours,
            each.verdict,
            each.rests_on,
            command,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def counted(headlines: Sequence[Headline]) -> str:
    """Return how many figures are met, missed, contradicted and open."""
    verdicts = [each.verdict for each in headlines]
    told = ((verdicts.count(name), name.strip("*")) for name in VERDICTS)
    return ", ".join(f"{count} {name}" for count, name in told if count)
