"""The kernels of a point's program, whether or not it was ever built or measured."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dlas.bench.store.cache import Cache
from dlas.networks.operators import Operators, at_batch
from dlas.stack import Layer
from dlas.sweep.engine.operators import network_operators
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.engine.steps.kernels import KERNELS_FILE, kernels_of
from dlas.sweep.study.point import Point


def program_kernels(
    cache: Cache, artifacts: Mapping[str, object], point: Point, operators: Operators | None = None
) -> list[Layer]:
    """Return the kernels of a point's program in one inference, without times.

    Parameters
    ----------
    cache : Cache
    artifacts : mapping
        Keys of the point's artifacts by kind, once its steps until ``kernels`` have run.
    point : Point
    operators : Operators, optional
        Of its network, where they have been read already.

    Raises
    ------
    Unsupported
        If its compiler cannot tell them before the program has run, or the network does not take the batch.
    CorruptArtifact
        If the cache does not hold the network, or what was lowered.
    """
    if "kernels" in artifacts:
        folder = load_verified(cache, "kernels", str(artifacts["kernels"])).folder
        kernels: list[Layer] = json.loads((folder / KERNELS_FILE).read_text(encoding="utf-8"))
        return kernels
    key = str(artifacts["network"])
    known = at_batch(operators or network_operators(cache, key), point.batch)
    return kernels_of(point, lambda: restore_network(cache, key, point), known)
