"""The paper's observations with their claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text

from dlas.analysis.observations import FAILS, HOLDS, OPEN, VERDICTS, Claim, Finding
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import points as counted

STYLES = {HOLDS: "good", FAILS: "bad", OPEN: "doubt"}


def verdicts(findings: Sequence[Finding]) -> Table:
    """Return each observation with its two verdicts, and below it its claims with their numbers."""
    columns = [
        Column("no."),
        Column("all algorithms", "verdict"),
        Column("the paper's", "verdict"),
        Column("observation", wide=True),
        Column("numbers", wide=True),
    ]
    caption = (
        "An observation holds if all of its claims do; a claim without enough points leaves it open. "
        "The paper's algorithms are direct, GEMM and spatial pack in NCHW, dense and on compressed rows; "
        "runtimes count in both."
    )
    lines = [line for finding in findings for line in _lines(finding)]
    return Table("observations", caption, columns, lines, names=1)


def in_words(findings: Sequence[Finding]) -> str:
    """Return how many observations hold, fail and are open, over all algorithms and over the paper's."""
    every = _counted([finding.verdict for finding in findings])
    own = _counted([finding.verdict_of_paper for finding in findings])
    return every if own == every else f"{every}; over the paper's algorithms {own}"


def _counted(verdicts: Sequence[str]) -> str:
    counts = Counter(verdicts)
    return ", ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])


def listing(findings: Sequence[Finding], points: int, unstable: int = 0) -> Grid:
    """Return the observations below what they amount to.

    Parameters
    ----------
    points, unstable : int
        Number of points that they were checked on, and of those whose times are left out.
    """
    above = [Text(f"{counted(points)}: {in_words(findings)}", style="bold")]
    if unstable:
        above.append(Text(f"left out: the times of {counted(unstable)}, which are unstable"))
    return Grid(verdicts(findings), above)


def _lines(finding: Finding) -> list[Line]:
    observation = finding.observation
    needs = f"needs {observation.needs}" if finding.verdict == OPEN else ""
    statement = Cell(observation.statement, needs, style="head")
    each = _verdict(finding.verdict), _verdict(finding.verdict_of_paper)
    lines = [Line([Cell(observation.number, style="head"), *each, statement, Cell("")])]
    for claim, own in zip(finding.claims, finding.of_paper, strict=True):
        text = Cell(claim.text, style="claim")
        lines.append(
            Line([Cell(""), _verdict(claim.verdict), _verdict(own.verdict), text, _numbers(claim, own)])
        )
    lines[-1] = replace(lines[-1], last=True)
    return lines


def _numbers(claim: Claim, own: Claim) -> Cell:
    """Return the numbers behind both verdicts, those of the paper's algorithms where they differ."""
    every, paper = _told(claim), _told(own)
    note = f"the paper's: {paper}" if paper != every else ""
    return Cell(every, note, style="" if claim.numbers else "muted")


def _told(claim: Claim) -> str:
    missing = f"missing: {claim.missing}" if claim.missing else ""
    return "; ".join(filter(None, (claim.numbers, missing)))


def _verdict(verdict: str) -> Cell:
    return Cell(verdict, style=STYLES[verdict])
