"""The paper's observations as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from dlas.analysis.observations import FAILS, HOLDS, OPEN, VERDICTS, Finding
from dlas.sweep.rows.labels import points as counted

COLOURS = {HOLDS: "green", FAILS: "red", OPEN: "yellow"}


def listing(findings: Sequence[Finding], points: int, unstable: int = 0) -> RenderableType:
    """Return each observation with its verdict, and below it its claims with their numbers.

    Parameters
    ----------
    points, unstable : int
        Number of points that they were checked on, and of those whose times are left out.
    """
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    pieces: list[RenderableType] = [Text(f"{counted(points)}: {summary}", style="bold"), Text()]
    if unstable:
        pieces.insert(1, Text(f"left out: the times of {counted(unstable)}, which are unstable"))
    for finding in findings:
        head = Text.assemble(
            (f"{finding.observation.number:<5}", "bold"),
            (finding.verdict, f"bold {COLOURS[finding.verdict]}"),
            f"  {finding.observation.statement}",
        )
        pieces += [head, Padding(_claims(finding), (0, 0, 1, 5), expand=False)]
    return Group(*pieces)


def _claims(finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2))
    for claim in finding.claims:
        numbers = Text(claim.numbers)
        if claim.missing:
            numbers.append(f"{'; ' if claim.numbers else ''}missing: {claim.missing}", style="dim")
        table.add_row(Text(claim.verdict, style=COLOURS[claim.verdict]), Text(claim.text), numbers)
    return table
