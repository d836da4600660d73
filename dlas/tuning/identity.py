"""The identity of tuning records: they are valid for, and shared by, workloads with the same hash."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from dlas.lowering.kernels import algorithm_name
from dlas.measuring.machine import machine_name
from dlas.stack import Algorithm, Decisions, Hardware
from dlas.store import fingerprint
from dlas.tuning.records import Header
from dlas.tuning.workload import Workload

TOOLS = ("apache-tvm", "apache-tvm-ffi")
HOMES = ("dlas.schedules", "dlas.sparse")
"""Packages of algorithms and of the code that algorithms share."""


def describe_device(hardware: Hardware) -> dict[str, Any]:
    """Return the properties of a device that records depend on: its target and its machine."""
    target = hardware.target()
    machine = machine_name(hardware.describe())
    return {"target": dict(target.description), "threads": target.threads, "machine": machine}


def make_header(
    workload: Workload, points: Sequence[Decisions], device: Mapping[str, Any], seed: int, per_round: int
) -> Header:
    """Return the header of a workload's records.

    Parameters
    ----------
    workload : Workload
    points : sequence of mapping
        The algorithm's own space; empty if TVM's default rules are searched.
    device : mapping
        From :func:`describe_device`.
    seed, per_round : int
        Of the search.
    """
    algorithm = workload.kernel.algorithm
    space: dict[str, Any] = {"name": "algorithm" if points else "rules", "per_round": per_round}
    if points:
        space["points"] = fingerprint.key(points=[dict(point) for point in points])
    identity = {
        "workload": workload.digest,
        "algorithm": _describe(algorithm),
        # The rules' traces depend on the algorithm's code only if it adds passes or arguments.
        "code": _sources(type(algorithm)) if points or _changes_measurement(algorithm) else None,
        "space": space,
        **device,
        "seed": seed,
        "tools": fingerprint.versions(TOOLS),
    }
    return Header(identity, workload.about())


def _describe(algorithm: Algorithm) -> dict[str, Any]:
    options = {name: str(value) for name, value in vars(algorithm).items()}
    return {"name": algorithm_name(algorithm), "class": type(algorithm).__qualname__, "options": options}


def _changes_measurement(algorithm: Algorithm) -> bool:
    """Return whether an algorithm defines passes or arguments, which change measurements."""
    own = type(algorithm)
    return own.passes is not Algorithm.passes or own.arguments is not Algorithm.arguments


@functools.cache
def _sources(algorithm: type[Algorithm]) -> str:
    """Return the hash of an algorithm's code and its imports from packages of algorithms.

    Effects of other code are visible in the computation and in the points of the space;
    a change there must not discard hours of records.
    """
    module = algorithm.__module__
    code = fingerprint.SourceTree()
    return code.digest(code.closure([module], within=(*HOMES, module.rpartition(".")[0] or module)))
