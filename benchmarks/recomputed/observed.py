"""The numbers that observations rest on, as a README quotes them."""

from __future__ import annotations

import pandas as pd

from benchmarks.recomputed.markdown import numbers
from dlas.analysis.observations import observe
from dlas.analysis.observations.evidence import Evidence


def observed(points: pd.DataFrame) -> dict[str, list[str]]:
    """Return by observation the numbers of its claims, in their order."""
    return {
        found.observation.number: numbers(" ".join(claim.numbers for claim in found.claims))
        for found in observe(Evidence(points))
    }
