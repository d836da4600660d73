"""The paper's observations, checked on these rows."""

from __future__ import annotations

import shlex

from dlas.analysis.observations import OPEN, Finding, observe
from dlas.face.reporting.blocks import Absent, Block, Paragraph, Section
from dlas.face.reporting.context import Context
from dlas.face.tables.observations import in_words, verdicts
from dlas.sweep.rows.labels import listed


def section(context: Context) -> Section | Absent:
    """Return the thirteen observations with their verdicts on these rows."""
    findings = observe(context.evidence)
    told = [finding for finding in findings if _told(finding)]
    silent = [finding for finding in findings if not _told(finding)]
    lead = (
        "The thirteen observations of the paper's section 6, checked on these rows, each with its claims: "
        f"{in_words(findings)}."
    )
    blocks: list[Block] = [verdicts(told)] if told else []
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
    return any(claim.verdict != OPEN for claim in [*finding.claims, *finding.of_paper])
