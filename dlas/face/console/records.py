"""Tuning records as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlas.sweep.rows.labels import MISSING, convolution, duration, factor, milliseconds
from dlas.sweep.rows.older import with_operator

if TYPE_CHECKING:
    from dlas.lowering.tuning.records import Records

COLUMNS = (
    "convolution",
    "with",
    "algorithm",
    "space",
    "machine",
    "threads",
    "seed",
    "trials",
    "valid",
    "best ms",
    "times as fast as minimal",
    "search",
)


def cells(records: Records) -> Iterable[str]:
    """Return the cells of one workload's line."""
    about, identity = records.header.about, records.header.identity
    best = min((trial.median_s for trial in records.valid), default=None)
    minimal = min(records.baseline.run_s) if records.baseline else None
    yield convolution(about) or str(about.get("name", MISSING))
    yield " ".join(with_operator(about).get("fused", []))
    yield str(identity.get("algorithm", {}).get("name", MISSING))
    yield str(identity.get("space", {}).get("name", MISSING))
    # A board's key tells it from others with its processor.
    yield ", ".join(str(identity[name]) for name in ("machine", "board") if identity.get(name)) or MISSING
    yield from (str(identity.get(name, MISSING)) for name in ("threads", "seed"))
    yield str(len(records.trials))
    yield str(len(records.valid))
    yield milliseconds(best) if best else MISSING
    yield factor(minimal / best) if best and minimal else MISSING
    yield duration(sum(trial.seconds for trial in records.trials.values()))
