"""The identity of tuning records: they are valid for, and shared by, workloads with the same hash."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from dlas.bench.store import fingerprint
from dlas.lowering.tuning.records import Header
from dlas.lowering.tuning.workload import Workload
from dlas.stack import Decisions, Hardware

TOOLS = ("apache-tvm", "apache-tvm-ffi")
HOMES = ("dlas.schedules", "dlas.sparse")
"""Packages of algorithms and of the code that kernels share."""


def describe_device(hardware: Hardware) -> dict[str, Any]:
    """Return the properties of a device that records depend on: its target and its machine.

    Raises
    ------
    Unreachable
        If they are not known before the device answers.
    """
    target = hardware.target()
    return {"target": dict(target.description), "threads": target.threads, **hardware.recorded_as()}


def make_header(
    workload: Workload, points: Sequence[Decisions], device: Mapping[str, Any], seed: int, per_round: int
) -> Header:
    """Return the header of a workload's records.

    Parameters
    ----------
    points : sequence of mapping
        The kernel's own space; empty if TVM's default rules are searched.
    device : mapping
        From :func:`describe_device`.
    seed, per_round : int
        Of the search.
    """
    origin = workload.kernel.origin
    space: dict[str, Any] = {"name": "algorithm" if points else "rules", "per_round": per_round}
    if points:
        space["points"] = fingerprint.key(points=[dict(point) for point in points])
    identity = {
        "workload": workload.digest,
        "algorithm": origin.identity,
        # The rules' traces depend on that code only if it adds passes or arguments.
        "code": _sources(origin.code) if points or origin.special else None,
        "space": space,
        **device,
        "seed": seed,
        "tools": fingerprint.versions(TOOLS),
    }
    return Header(identity, workload.about())


@functools.cache
def _sources(written_by: type) -> str:
    """Return the hash of the code of a class and its imports from packages of kernels.

    Effects of other code are visible in the computation and in the points of the space;
    a change there must not discard hours of records.
    """
    module = written_by.__module__
    code = fingerprint.SourceTree()
    return code.digest(code.closure([module], within=(*HOMES, module.rpartition(".")[0] or module)))
