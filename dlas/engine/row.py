"""From what happened to a point to its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlas.engine.planning import Plan
from dlas.measuring.environment import environment
from dlas.rows.results import Row
from dlas.store.cache import Cache
from dlas.study.point import Point


def make_row(
    study: str,
    point: Point,
    made: Plan,
    cache: Cache,
    *,
    status: str,
    reason: str | None,
    step: str | None,
    found: Mapping[str, Any],
    seconds: Mapping[str, float],
    started: str,
) -> Row:
    """Return the row for a point that came to its end, however it did.

    Parameters
    ----------
    status, reason, step : str or None
        As in :class:`dlas.rows.results.Row`.
    found : mapping
        What check and measure returned, as far as they were reached.
    seconds : mapping
        Seconds each step took; a step that found its artifact took none.
    """
    artifacts = made.artifacts()
    network = _facts(cache, "network", artifacts)
    built = _facts(cache, "build", artifacts)
    tuned = _facts(cache, "tuning", artifacts)
    known = {**network, **found}
    return Row(
        **point.content(),
        **{name: value for name, value in known.items() if name in Row.__dataclass_fields__},
        id=point.id,
        key=made.key,
        study=study,
        status=status,
        reason=reason,
        step=step,
        layers=_layers(built.get("layers", []), found.get("layer_seconds") or {}),
        edges=built.get("edges", []),
        coverage=built.get("coverage"),
        tuning={name: value for name, value in tuned.items() if name != "curves"} or None,
        library_bytes=built.get("library_bytes"),
        expected_speedup=_expected_speedup(network["reached"]) if network else None,
        seconds=dict(seconds),
        artifacts=artifacts,
        measure=made.measure.arguments["settings"],
        environment=environment(),
        started=started,
    )


def tuning_curves(made: Plan, cache: Cache) -> list[dict[str, Any]]:
    """Return how a point's search went, a mapping a workload; empty where there was none."""
    found: list[dict[str, Any]] = _facts(cache, "tuning", made.artifacts()).get("curves", [])
    return found


def _layers(convolutions: list[dict[str, Any]], seconds: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the convolutions with their times, then the other operators."""
    known = {layer["name"] for layer in convolutions}
    timed = [{**layer, "latency_s": seconds.get(layer["name"])} for layer in convolutions]
    return timed + [{"name": name, "latency_s": s} for name, s in seconds.items() if name not in known]


def _facts(cache: Cache, kind: str, artifacts: Mapping[str, str]) -> dict[str, Any]:
    artifact = cache.get(kind, artifacts[kind]) if kind in artifacts else None
    return artifact.facts if artifact else {}


def _expected_speedup(reached: Mapping[str, Any]) -> float:
    """Return what the compression promises: 1 / (1 - ratio) for pruning, 32 / bits for types, or both.

    References
    ----------
    DLAS, section 5.1.2.
    """
    kept = 1 - min(float(reached.get("ratio", 0)), 1 - 1e-9)
    return 32 / float(reached.get("bits", 32)) / kept
