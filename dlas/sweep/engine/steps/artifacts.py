"""Load artifacts and networks from the cache."""

from __future__ import annotations

from dlas.bench.store.cache import Artifact, Cache
from dlas.errors import CorruptArtifact
from dlas.stack import Compression, Facts, Network, SavedNetwork
from dlas.sweep.study.point import Point


def load_artifact(cache: Cache, kind: str, key: str) -> Artifact:
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


def load_verified(cache: Cache, kind: str, key: str) -> Artifact:
    """Return an artifact after checking its files; drop it if one has changed.

    Raises
    ------
    CorruptArtifact
        If the cache has dropped it, or a file is damaged.
    """
    artifact = load_artifact(cache, kind, key)
    try:
        artifact.verify()
    except CorruptArtifact:
        cache.discard(kind, key)
        raise
    return artifact


def saved_network(cache: Cache, key: str, point: Point) -> SavedNetwork:
    """Return a network's facts with a function that restores it."""
    facts = network_facts(load_artifact(cache, "network", key))
    return SavedNetwork(facts, lambda: restore_network(cache, key, point))


def restore_network(cache: Cache, key: str, point: Point) -> Network:
    """Return a point's network from its artifact; drop that if its weights cannot be made again.

    Raises
    ------
    CorruptArtifact
    """
    artifact = load_verified(cache, "network", key)
    compression: Compression = point.compression.make("compression")
    try:
        return compression.restore(point.model.make("model"), artifact.folder, network_facts(artifact))
    except CorruptArtifact:
        cache.discard("network", key)
        raise


def network_facts(artifact: Artifact) -> Facts:
    """Return the facts that a network's artifact stores."""
    facts = {name: value for name, value in artifact.facts.items() if name in Facts.__dataclass_fields__}
    return Facts(**{**facts, "shape": tuple(facts["shape"])})
