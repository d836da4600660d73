"""Read networks and what is known of them from the cache."""

from __future__ import annotations

from dlas.errors import CorruptArtifact
from dlas.stack import Compression, Facts, Network, SavedNetwork
from dlas.store.cache import Artifact, Cache
from dlas.study.point import Point


def stored(cache: Cache, kind: str, key: str) -> Artifact:
    """Return an artifact.

    Raises
    ------
    CorruptArtifact
        If the cache has dropped it.
    """
    artifact = cache.get(kind, key)
    if artifact is None:
        raise CorruptArtifact(f"{kind} {key} is not in the cache any more")
    return artifact


def verified(cache: Cache, kind: str, key: str) -> Artifact:
    """Return an artifact whose files are what was written; drop it if they are not."""
    artifact = stored(cache, kind, key)
    try:
        artifact.verify()
    except CorruptArtifact:
        cache.discard(kind, key)
        raise
    return artifact


def saved(cache: Cache, key: str, point: Point) -> SavedNetwork:
    """Return what is known of a network, which is restored when it is asked for."""
    facts = network_facts(stored(cache, "network", key))
    return SavedNetwork(facts, lambda: restored(cache, key, point))


def restored(cache: Cache, key: str, point: Point) -> Network:
    """Return the network of a point from its artifact."""
    artifact = verified(cache, "network", key)
    compression: Compression = point.compression.make("compression")
    return compression.restore(point.model.make("model"), artifact.folder, network_facts(artifact))


def network_facts(artifact: Artifact) -> Facts:
    """Return what is known of a network by its artifact."""
    known = {name: value for name, value in artifact.facts.items() if name in Facts.__dataclass_fields__}
    return Facts(**{**known, "shape": tuple(known["shape"])})
