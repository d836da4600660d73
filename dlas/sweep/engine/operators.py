"""The operators of a point's network, whether or not the point was ever built or measured."""

from __future__ import annotations

from dlas.bench.store.cache import Cache
from dlas.networks.operators import Operators, read_operators
from dlas.sweep.engine.steps.artifacts import load_verified


def network_operators(cache: Cache, key: str) -> Operators:
    """Return what is known of a network's operators, from which those of any batch follow.

    Points share a network that differ in batch, compiler or device.

    Parameters
    ----------
    cache : Cache
    key : str
        Of the network's artifact.

    Raises
    ------
    CorruptArtifact
        If the cache does not hold the network.
    """
    return read_operators(load_verified(cache, "network", key).folder)
