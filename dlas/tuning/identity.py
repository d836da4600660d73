"""What has to be the same for tuning records to hold: the key that models and studies share them by."""

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
"""Where algorithms are; they share what lies beside them."""


def place(hardware: Hardware) -> dict[str, Any]:
    """Return what records depend on of a device: code for another, or times of another, are no use."""
    target = hardware.target()
    machine = machine_name(hardware.describe())
    return {"target": dict(target.description), "threads": target.threads, "machine": machine}


def header(
    workload: Workload, points: Sequence[Decisions], where: Mapping[str, Any], seed: int, per_round: int
) -> Header:
    """Return what records of a workload are about.

    Parameters
    ----------
    workload : Workload
    points : sequence of mapping
        The algorithm's own space; empty where TVM's default rules are searched.
    where : mapping
        What :func:`place` returned.
    seed, per_round : int
        Of the search.
    """
    algorithm = workload.kernel.algorithm
    space: dict[str, Any] = {"name": "algorithm" if points else "rules", "per_round": per_round}
    if points:
        space["points"] = fingerprint.key(points=[dict(point) for point in points])
    identity = {
        "workload": workload.digest,
        "algorithm": _described(algorithm),
        # A trace of the rules follows from the computation alone, if nothing comes before or after it.
        "code": _sources(type(algorithm)) if points or _takes_part(algorithm) else None,
        "space": space,
        **where,
        "seed": seed,
        "tools": fingerprint.versions(TOOLS),
    }
    return Header(identity, workload.about())


def _described(algorithm: Algorithm) -> dict[str, Any]:
    options = {name: str(value) for name, value in vars(algorithm).items()}
    return {"name": algorithm_name(algorithm), "class": type(algorithm).__qualname__, "options": options}


def _takes_part(algorithm: Algorithm) -> bool:
    """Whether an algorithm changes what is measured, beside what it computes."""
    own = type(algorithm)
    return own.passes is not Algorithm.passes or own.arguments is not Algorithm.arguments


@functools.cache
def _sources(algorithm: type[Algorithm]) -> str:
    """Return the hash of an algorithm's code and of what that imports from where algorithms are.

    What lies elsewhere shows in the computation and in the points of the space;
    records of hours should not be lost over it.
    """
    module = algorithm.__module__
    code = fingerprint.SourceTree()
    return code.digest(code.closure([module], within=(*HOMES, module.rpartition(".")[0] or module)))
