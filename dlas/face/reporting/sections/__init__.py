"""The sections of a report, one file a topic."""

from __future__ import annotations

from collections.abc import Callable

from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import (
    accuracy,
    batches,
    break_even,
    checks,
    clocks,
    compression,
    correlations,
    costs,
    curves,
    dependence,
    latency,
    layers,
    matrix,
    operators,
    paths,
    predicted,
    predictors,
    promises,
    question,
    ratios,
    searches,
    summary,
    trust,
    variability,
    winners,
)

SECTIONS: tuple[Callable[[Context], Section | Absent], ...] = (
    summary.section,
    question.section,
    matrix.section,
    winners.section,
    latency.section,
    batches.section,
    clocks.section,
    paths.section,
    ratios.tuning,
    ratios.runtimes,
    promises.section,
    break_even.section,
    accuracy.section,
    compression.section,
    curves.section,
    operators.section,
    layers.section,
    dependence.section,
    correlations.section,
    predicted.section,
    predictors.section,
    searches.section,
    checks.section,
    costs.section,
    variability.section,
    trust.section,
)
"""The sections in their order on the page."""
