"""Make the row of a point that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dlas.bench.measuring.environment import environment
from dlas.bench.processes.outcome import Outcome
from dlas.bench.store.cache import Cache
from dlas.errors import Unsupported
from dlas.networks.operators import at_batch, read_operators, without_reads
from dlas.sweep.engine.planning import Plan
from dlas.sweep.engine.point_run import PointRun
from dlas.sweep.rows.expected import by_bits, by_ratio_and_bits, takes_shallow_phases
from dlas.sweep.rows.machines import with_core_caches
from dlas.sweep.rows.results import UNSTABLE, Row
from dlas.sweep.rows.schema import Artifacts, Environment, Layer, Seconds, TuningSummary
from dlas.sweep.study import parts


def make_row(study: str, run: PointRun, outcome: Outcome, cache: Cache) -> Row:
    """Return the row of a point that has ended, successfully or not.

    Parameters
    ----------
    study : str
        The study's name.
    cache : Cache
        Holds the facts of the point's artifacts.
    """
    artifacts = run.plan.artifacts()
    network = _facts(cache, "network", artifacts)
    build = _facts(cache, "build", artifacts)
    tuning = _facts(cache, "tuning", artifacts)
    timed = run.facts.get("timed_layers")
    device = {"device": with_core_caches(run.facts["device"])} if "device" in run.facts else {}
    told = _note(network.get("note"), *map(run.facts.get, ("training_note", "simulation_note")))
    facts = {**network, **run.facts, **run.facts.get("counted", {}), **device, "note": told}
    unstable = outcome.status == "ok" and bool(run.facts.get("unstable"))
    return Row(
        **run.plan.content,
        **{name: value for name, value in facts.items() if name in Row.__dataclass_fields__},
        id=run.plan.id,
        key=run.plan.key,
        study=study,
        status=UNSTABLE if unstable else outcome.status,
        reason=run.facts.get("unstable_reason") if unstable else outcome.reason,
        step=None if outcome.status == "ok" else run.step.name,
        layers=merged_layers(build["layers"], timed or _untimed(run, cache)) if build else timed or [],
        edges=build.get("edges", []),
        coverage=build.get("coverage"),
        tuning=_summary(tuning),
        library_bytes=build.get("library_bytes"),
        packed_bytes=build.get("packed_bytes"),
        expected_speedup=_expected_speedup(network, _dense(run.plan, cache)),
        seconds=cast(Seconds, dict(run.took.worked)),
        waited=cast(Seconds, dict(run.took.waited)),
        cached=cast(Seconds, dict(run.took.cached)),
        sources=run.plan.sources,
        artifacts=cast(Artifacts, artifacts),
        measure=run.plan.measure.arguments["settings"],
        environment=cast(Environment, environment()),
        started=run.started,
    )


def tuning_curves(artifacts: Mapping[str, str], cache: Cache) -> list[dict[str, Any]]:
    """Return the curves of the search among some artifacts, one for each workload; empty without one."""
    curves: list[dict[str, Any]] = _facts(cache, "tuning", artifacts).get("curves", [])
    return curves


def _note(*remarks: str | None) -> str | None:
    """Return remarks as one, None without any."""
    return "; ".join(remark for remark in remarks if remark) or None


def _summary(tuning: Mapping[str, Any]) -> TuningSummary | None:
    """Return a row's summary of a search, None without a search."""
    return cast(TuningSummary, {name: value for name, value in tuning.items() if name != "curves"}) or None


def merged_layers(built: list[Layer], timed: list[Layer]) -> list[Layer]:
    """Return what the program ran, in its order, with what the build says of it; then the untimed."""
    by_name = {layer["name"]: layer for layer in built}
    joined: list[Layer] = [{**by_name.pop(layer["name"], layer), **layer} for layer in timed]
    return joined + [{**layer, "latency_s": None} for layer in by_name.values()]


def _untimed(run: PointRun, cache: Cache) -> list[Layer]:
    """Return the operators of a network whose layers nothing timed; none where the build tells its kernels.

    A runtime with kernels of its own tells only the convolutions of its build.
    """
    if run.plan.content["algorithm"]["name"] != parts.LIBRARY:
        return []
    # Not verified, since hashing weights here would disturb what is measured meanwhile.
    artifact = cache.get("network", run.plan.artifacts()["network"])
    try:
        operators = read_operators(artifact.folder) if artifact else {}
        return [
            {**without_reads(layer), "latency_s": None}
            for layer in at_batch(operators, run.plan.content["batch"])
        ]
    except (OSError, ValueError, Unsupported):
        return []


def _dense(plan: Plan, cache: Cache) -> dict[str, Any]:
    """Return the facts of a point's network before any compression; its first step makes it."""
    artifact = cache.get("network", plan.steps[0].key)
    return artifact.facts if artifact else {}


def _facts(cache: Cache, kind: str, artifacts: Mapping[str, str]) -> dict[str, Any]:
    artifact = cache.get(kind, artifacts[kind]) if kind in artifacts else None
    return artifact.facts if artifact else {}


def _expected_speedup(network: Mapping[str, Any], dense: Mapping[str, Any]) -> float | None:
    """Return the speed-up expected of a network's compression, None where that is unknown.

    Parameters
    ----------
    network, dense : mapping
        The facts of the compressed network, and of the one that compression started from; empty if unknown.
    """
    if not network:
        return None
    reached = network["reached"]
    if not takes_shallow_phases(reached):
        return by_ratio_and_bits(reached)
    whole, left = dense.get("macs"), network.get("effective_macs") or network.get("macs")
    return by_bits(reached) * whole / left if whole and left else None
