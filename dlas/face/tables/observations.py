"""The paper's observations with their claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from dlas.analysis.observations import FAILS, HOLDS, OPEN, VERDICTS, Finding
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.face.tables.text import Grid
from dlas.sweep.rows.labels import points as counted

STYLES = {HOLDS: "good", FAILS: "bad", OPEN: "doubt"}


def verdicts(findings: Sequence[Finding]) -> Table:
    """Return each observation with its verdict, and below it its claims with their numbers."""
    columns = [
        Column("no."),
        Column("verdict"),
        Column("observation", wide=True),
        Column("numbers", wide=True),
    ]
    caption = "An observation holds if all of its claims do; a claim without enough points leaves it open."
    lines = [line for finding in findings for line in _lines(finding)]
    return Table("observations", caption, columns, lines, names=1)


def in_words(findings: Sequence[Finding]) -> str:
    """Return how many observations hold, fail and are open: ``holds: 5, open: 8``."""
    counts = Counter(finding.verdict for finding in findings)
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
    observation, claims = finding.observation, finding.claims
    needs = f"needs {observation.needs}" if finding.verdict == OPEN else ""
    statement = Cell(observation.statement, needs, style="head")
    head = [Cell(observation.number, style="head"), _verdict(finding.verdict), statement, Cell("")]
    lines = [Line(head, last=not claims)]
    for claim in claims:
        missing = f"missing: {claim.missing}" if claim.missing else ""
        numbers = Cell(
            "; ".join(filter(None, (claim.numbers, missing))), style="" if claim.numbers else "muted"
        )
        cells = [Cell(""), _verdict(claim.verdict), Cell(claim.text, style="claim"), numbers]
        lines.append(Line(cells, last=claim is claims[-1]))
    return lines


def _verdict(verdict: str) -> Cell:
    return Cell(verdict, style=STYLES[verdict])
