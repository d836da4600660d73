"""The paper's observations, checked on these rows."""

from __future__ import annotations

import shlex
from collections import Counter

from dlas.analysis.observations import FAILS, HOLDS, OPEN, VERDICTS, Finding, observe
from dlas.face.reporting.blocks import Absent, Block, Cell, Column, Line, Paragraph, Section, Table
from dlas.face.reporting.context import Context
from dlas.sweep.rows.labels import listed

STYLES = {HOLDS: "good", FAILS: "bad"}


def section(context: Context) -> Section | Absent:
    """Return the thirteen observations with their verdicts on these rows."""
    findings = observe(context.evidence)
    told = [finding for finding in findings if _told(finding)]
    silent = [finding for finding in findings if not _told(finding)]
    counts = Counter(finding.verdict for finding in findings)
    summary = ", ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    lead = (
        "The thirteen observations of the paper's section 6, checked on these rows, each with its claims: "
        f"{summary}."
    )
    blocks: list[Block] = [_table(told)] if told else []
    if silent:
        numbers = listed([finding.observation.number for finding in silent])
        one = f"observation {numbers}" if len(silent) == 1 else f"observations {numbers}"
        folder = shlex.quote(context.folders[0]) if len(context.folders) == 1 else "FOLDER..."
        command = f"`dlas observations {folder}`"
        blocks.append(
            Paragraph(f"These rows say nothing of {one}: {command} lists the points that are missing.")
        )
    return Section("observations", "The paper's observations", lead, blocks)


def _told(finding: Finding) -> bool:
    """Return whether the rows say anything of an observation."""
    return any(claim.verdict != OPEN for claim in finding.claims)


def _table(findings: list[Finding]) -> Table:
    columns = [
        Column("no."),
        Column("observation", wide=True),
        Column("verdict"),
        Column("numbers", wide=True),
    ]
    lines = [line for finding in findings for line in _lines(finding)]
    caption = "An observation holds if all of its claims do; a claim without enough points leaves it open."
    return Table("observations", caption, columns, lines, names=2)


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
