"""Tuning records as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
    "/ minimal",
    "search",
)


def _cells(found: Any) -> Iterable[str]:
    """Return what a line of the list says of one workload."""
    from dlas.rows.labels import MISSING, convolution, duration, factor, milliseconds

    about, identity = found.header.about, found.header.identity
    best = min((trial.median_s for trial in found.valid), default=None)
    minimal = min(found.baseline.run_s) if found.baseline else None
    yield convolution(about) or str(about.get("name", MISSING))
    yield " ".join(about.get("tail", []))
    yield str(identity.get("algorithm", {}).get("name", MISSING))
    yield str(identity.get("space", {}).get("name", MISSING))
    yield str(identity.get("machine", MISSING))
    yield from (str(identity.get(name, MISSING)) for name in ("threads", "seed"))
    yield str(len(found.trials))
    yield str(len(found.valid))
    yield milliseconds(best) if best else MISSING
    yield f"{factor(minimal / best)}x" if best and minimal else MISSING
    yield duration(sum(trial.seconds for trial in found.trials.values()))
