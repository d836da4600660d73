"""The operators of a point's network, whether or not the point was ever built or measured."""

from __future__ import annotations

from dlas.engine.planning import Plan
from dlas.engine.steps.artifacts import load_verified
from dlas.networks.operators import at_batch, read_operators
from dlas.stack import Layer
from dlas.store.cache import Cache


def operators_of(cache: Cache, plan: Plan) -> list[Layer]:
    """Return the operators of one inference of a point's batch, in order and without times.

    They are those of the network's artifact, which points share that differ in batch, compiler or device.

    Parameters
    ----------
    cache : Cache
    plan : Plan
        Of the point.

    Raises
    ------
    CorruptArtifact
        If the cache does not hold the network.
    Unsupported
        If the network does not take the batch, or its operators are not known.
    """
    artifact = load_verified(cache, "network", plan.artifacts()["network"])
    return at_batch(read_operators(artifact.folder), plan.measure.arguments["content"]["batch"])
