"""Artifacts that travel from one machine's cache to another's, checked by their digests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.store.cache import Cache
from dlas.bench.store.fingerprint import file_digest
from dlas.errors import CorruptArtifact


@dataclass(frozen=True)
class Parcel:
    """An artifact with its content."""

    kind: str
    key: str
    facts: dict[str, Any]
    contents: dict[str, bytes]
    """By the file's name."""
    digests: dict[str, str]
    """The same, as the cache that it is from has them."""


def pack(cache: Cache, kind: str, key: str) -> Parcel | None:
    """Return an artifact of a cache; None where the cache has it no more."""
    artifact = cache.get(kind, key)
    if artifact is None:
        return None
    contents = {name: (artifact.folder / name).read_bytes() for name in artifact.files}
    digests = {name: digest for name, (_, digest) in artifact.files.items()}
    return Parcel(kind, key, artifact.facts, contents, digests)


def unpack(cache: Cache, parcel: Parcel) -> None:
    """Add an artifact to a cache, unless it is there.

    Raises
    ------
    CorruptArtifact
        If a file is not what it was when it was packed.
    """
    if cache.get(parcel.kind, parcel.key) is not None:
        return
    with cache.create(parcel.kind, parcel.key) as (folder, facts):
        facts.update(parcel.facts)
        for name, content in parcel.contents.items():
            path = folder / Path(name).name
            path.write_bytes(content)
            if path.name != name or file_digest(path) != parcel.digests[name]:
                raise CorruptArtifact(f"{parcel.kind} {parcel.key}: {name!r} has changed on its way")
