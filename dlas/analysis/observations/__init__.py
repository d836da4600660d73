"""The paper's observations I to XIII, as checks over any rows.

References
----------
DLAS, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dlas.analysis.observations import (
    accuracy_of_types,
    best_dense_on_cpus,
    best_dense_on_gpus,
    best_sparse,
    costs_and_latency,
    faster_hardware,
    pruning_by_dataset,
    pruning_promises,
    size_and_vulnerability,
    tuning_changes_the_best,
    tuning_of_pruned,
    types_by_hardware,
    weight_or_channel_pruning,
)
from dlas.analysis.observations.evidence import FAILS, HOLDS, OPEN, VERDICTS, Claim, Evidence, Observation

__all__ = [
    "FAILS",
    "HOLDS",
    "OBSERVATIONS",
    "OPEN",
    "VERDICTS",
    "Claim",
    "Evidence",
    "Finding",
    "Observation",
    "findings_frame",
    "observe",
]

OBSERVATIONS = tuple(
    module.OBSERVATION
    for module in (
        costs_and_latency,
        pruning_by_dataset,
        size_and_vulnerability,
        weight_or_channel_pruning,
        types_by_hardware,
        accuracy_of_types,
        best_dense_on_cpus,
        best_dense_on_gpus,
        best_sparse,
        pruning_promises,
        tuning_changes_the_best,
        tuning_of_pruned,
        faster_hardware,
    )
)


@dataclass(frozen=True)
class Finding:
    """The result of checking one observation."""

    observation: Observation
    claims: list[Claim]
    """Checked over all algorithms."""
    of_paper: list[Claim]
    """The same claims, checked over the paper's own algorithms."""

    @classmethod
    def of(cls, observation: Observation, evidence: Evidence) -> Finding:
        """Check one observation."""
        claims = observation.check(evidence)
        same = evidence.of_paper is evidence
        return cls(observation, claims, claims if same else observation.check(evidence.of_paper))

    @property
    def verdict(self) -> str:
        """The verdict over all algorithms."""
        return joint_verdict(self.claims)

    @property
    def verdict_of_paper(self) -> str:
        """The verdict over the paper's own algorithms."""
        return joint_verdict(self.of_paper)


def joint_verdict(claims: Sequence[Claim]) -> str:
    """Return that it does not hold if any claim does not; else open if any claim is; else that it holds."""
    verdicts = {claim.verdict for claim in claims}
    return FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS


def observe(evidence: Evidence) -> list[Finding]:
    """Return the result of each observation, in the paper's order."""
    return [Finding.of(observation, evidence) for observation in OBSERVATIONS]


def findings_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a line for each claim of each observation; ``paper_`` names what the paper's algorithms say."""
    return pd.DataFrame(
        [
            {
                "observation": finding.observation.number,
                "statement": finding.observation.statement,
                "holds": finding.verdict,
                "paper_holds": finding.verdict_of_paper,
                "claim": claim.text,
                **_told(claim),
                **{f"paper_{name}": value for name, value in _told(own).items()},
            }
            for finding in findings
            for claim, own in zip(finding.claims, finding.of_paper, strict=True)
        ]
    )


def _told(claim: Claim) -> dict[str, str | int]:
    return {
        "verdict": claim.verdict,
        "numbers": claim.numbers,
        "missing": claim.missing,
        "cases": claim.cases,
    }
