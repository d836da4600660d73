"""Results of analyses as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dlas.analysis.compare import Comparison
from dlas.analysis.observations import Finding


def of_comparison(comparison: Comparison) -> pd.DataFrame:
    """Return a line for each value of each group.

    ``group`` numbers the groups, whose key are the columns behind it; the compared axis holds the
    value.  ``speedup``, with its interval, is over the baseline: 2 is twice as fast.  It is missing
    for the baseline and where there is no time; groups that were not ``matched`` have none.
    """
    lines = []
    for number, group in enumerate([*comparison.groups, *comparison.unmatched]):
        for value, row in group.rows.items():
            latency, ratio = row.latency_s, row.ratio or (None, None, None)
            lines.append(
                {"group": number, **group.key, comparison.axis: value, "status": row.status}
                | dict(zip(("latency_s", "latency_low_s", "latency_high_s"), latency, strict=True))
                | dict(zip(("speedup", "speedup_low", "speedup_high"), ratio, strict=True))
                | {"tie": row.tie, "noisy": row.noisy, "coverage": row.coverage, "reason": row.reason}
                | {"matched": number < len(comparison.groups)}
            )
    frame = pd.DataFrame(lines)
    speedups = [name for name in frame if str(name).startswith("speedup")]
    return frame.astype(dict.fromkeys(speedups, float))


def of_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return a line for each claim of each observation."""
    return pd.DataFrame(
        [
            {
                "observation": finding.observation.number,
                "statement": finding.observation.statement,
                "holds": finding.verdict,
                "claim": claim.text,
                "verdict": claim.verdict,
                "numbers": claim.numbers,
                "missing": claim.missing,
            }
            for finding in findings
            for claim in finding.claims
        ]
    )
