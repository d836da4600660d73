"""The paper's observations, checked on these rows."""

from __future__ import annotations

from collections import Counter

from dlas.analysis.observations import FAILS, HOLDS, VERDICTS, Finding, observe
from dlas.reporting.blocks import Absent, Cell, Column, Line, Section, Table
from dlas.reporting.context import Context

STYLES = {HOLDS: "good", FAILS: "bad"}


def section(context: Context) -> Section | Absent:
    """Return the thirteen observations with their verdicts on these rows."""
    findings = observe(context.evidence)
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    lead = (
        "The thirteen observations of the paper's section 6, checked on these rows, each with its claims: "
        f"{summary}."
    )
    columns = [
        Column("no."),
        Column("observation", wide=True),
        Column("verdict"),
        Column("numbers", wide=True),
    ]
    lines = [line for finding in findings for line in _lines(finding)]
    caption = "An observation holds if all of its claims do; a claim without enough points leaves it open."
    table = Table("observations", caption, columns, lines, names=2)
    return Section("observations", "The paper's observations", lead, [table])


def _lines(finding: Finding) -> list[Line]:
    observation = finding.observation
    needs = "" if finding.verdict in STYLES else f"needs {observation.needs}"
    names = [Cell(text, style="head") for text in (observation.number, observation.statement)]
    lines = [Line([*names, _verdict(finding.verdict), Cell(needs, style="muted")])]
    for claim in finding.claims:
        missing = f"Missing: {claim.missing}." if claim.missing else ""
        numbers = f"{claim.numbers}. {missing}" if claim.numbers and missing else claim.numbers or missing
        lines.append(
            Line([Cell(""), Cell(claim.text, style="claim"), _verdict(claim.verdict), Cell(numbers)])
        )
    return lines


def _verdict(verdict: str) -> Cell:
    return Cell(verdict, style=STYLES.get(verdict, "muted"))
