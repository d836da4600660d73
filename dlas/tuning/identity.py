"""What has to be the same for tuning records to hold: the key that models and studies share them by."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from dlas import fingerprint
from dlas.lowering.kernels import algorithm_name
from dlas.machine import machine_name
from dlas.stack import Algorithm, Decisions, Hardware
from dlas.tuning.records import Header
from dlas.tuning.workload import Workload

TOOLS = ("apache-tvm", "apache-tvm-ffi")
RULES_TOOLS = (*TOOLS, "xgboost")
HOMES = ("dlas.schedules", "dlas.sparse")
"""Where algorithms are; they share what lies beside them."""


def own_space_header(
    workload: Workload, points: Sequence[Decisions], hardware: Hardware, seed: int, per_round: int
) -> Header:
    """Return what records of an algorithm's own space are about.

    Parameters
    ----------
    workload : Workload
    points : sequence of mapping
        The space.
    hardware : Hardware
    seed, per_round : int
        Of the search.
    """
    space = {"points": fingerprint.key(points=[dict(point) for point in points]), "per_round": per_round}
    return _header(workload, {"name": "algorithm", **space}, hardware, seed, TOOLS)


def rules_header(workload: Workload, hardware: Hardware, seed: int, per_round: int) -> Header:
    """Return what records of TVM's default rules are about."""
    space = {"name": "rules", "per_round": per_round}
    return _header(workload, space, hardware, seed, RULES_TOOLS)


def _header(
    workload: Workload, space: dict[str, Any], hardware: Hardware, seed: int, tools: tuple[str, ...]
) -> Header:
    target = hardware.target()
    algorithm = workload.kernel.algorithm
    # A trace of the default rules follows from the computation alone, if nothing comes before or after it.
    code = _sources(type(algorithm)) if space["name"] == "algorithm" or _takes_part(algorithm) else None
    identity = {
        "workload": workload.digest,
        "algorithm": _described(algorithm),
        "code": code,
        "space": space,
        "target": dict(target.description),
        "threads": target.threads,
        "machine": machine_name(hardware.describe()),
        "seed": seed,
        "tools": fingerprint.versions(tools),
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
    return fingerprint.sources([module], within=(*HOMES, module.rpartition(".")[0] or module))
