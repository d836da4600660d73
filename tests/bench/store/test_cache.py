from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlas.bench.store.cache import BLOB_BYTES, Cache
from dlas.errors import CorruptArtifact


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def make(cache: Cache, key: str, content: bytes = b"x", kind: str = "network") -> None:
    with cache.create(kind, key) as (folder, facts):
        (folder / "file").write_bytes(content)
        facts["note"] = key


def test_what_was_made_is_there_with_its_facts(cache: Cache) -> None:
    assert cache.get("network", "a") is None
    make(cache, "a")
    artifact = cache.get("network", "a")
    assert artifact is not None
    assert (artifact.facts, (artifact.folder / "file").read_bytes()) == ({"note": "a"}, b"x")
    artifact.verify()


def test_a_failed_maker_leaves_nothing(cache: Cache) -> None:
    with pytest.raises(RuntimeError), cache.create("network", "a") as (folder, _):
        (folder / "file").write_bytes(b"x")
        raise RuntimeError
    assert cache.get("network", "a") is None
    assert not list((cache.root / "aside").iterdir())


def test_the_first_of_two_makers_wins(cache: Cache) -> None:
    with cache.create("network", "a") as (folder, _):
        (folder / "file").write_bytes(b"late")
        make(cache, "a", b"early")
    artifact = cache.get("network", "a")
    assert artifact is not None
    assert (artifact.folder / "file").read_bytes() == b"early"


def test_changed_content_of_the_same_size_is_noticed_when_verified(cache: Cache) -> None:
    make(cache, "a", b"one")
    (cache.root / "network" / "a" / "file").write_bytes(b"two")
    artifact = cache.get("network", "a")
    assert artifact is not None
    with pytest.raises(CorruptArtifact, match="file has changed"):
        artifact.verify()


def test_large_files_are_stored_once_by_content(cache: Cache) -> None:
    for key in "abc":
        make(cache, key, b"\1" * BLOB_BYTES)
    inodes = {os.stat(cache.root / "network" / key / "file").st_ino for key in "abc"}
    assert len(inodes) == 1
    for key in "abc":
        cache.discard("network", key)
    cache.tidy()
    assert not list((cache.root / "blobs").iterdir())


def test_a_damaged_blob_is_not_linked_again(cache: Cache) -> None:
    make(cache, "a", b"\1" * BLOB_BYTES)
    (blob,) = (cache.root / "blobs").iterdir()
    blob.write_bytes(b"\2" * BLOB_BYTES)
    make(cache, "b", b"\1" * BLOB_BYTES)
    artifact = cache.get("network", "b")
    assert artifact is not None
    artifact.verify()


def test_the_artifacts_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache", limit=3500)
    for number, key in enumerate("abcd"):
        make(cache, key, b"\0" * 1000)
        os.utime(cache.root / "network" / key / "manifest.json", (number, number))
    assert cache.get("network", "a") is not None  # used just now
    cache.tidy()
    assert [key for key in "abcd" if cache.get("network", key)] == ["a", "c", "d"] or [
        key for key in "abcd" if cache.get("network", key)
    ] == ["a", "d"]


def test_what_a_dead_process_left_aside_is_cleared(cache: Cache) -> None:
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    (cache.root / "aside" / f"{int(process.stdout)}-dead").mkdir()
    (cache.root / "aside" / f"{os.getpid()}-alive").mkdir()
    cache.tidy()
    assert [path.name for path in (cache.root / "aside").iterdir()] == [f"{os.getpid()}-alive"]


def test_a_lock_is_held_once(cache: Cache) -> None:
    held = cache.try_lock("network-a")
    assert held is not None
    assert cache.try_lock("network-a") is None
    assert cache.try_lock("network-b") is not None
    held.release()
    assert cache.try_lock("network-a") is not None
