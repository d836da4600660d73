"""Artifacts between steps: folders with a manifest, in a bounded cache that sweeps share.

An artifact is written to a temporary folder and renamed, so it is never half
written; its files are checked against the manifest before use; large files are
stored once by content, as hard links into ``blobs``.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.bench.store.fingerprint import file_digest
from dlas.bench.store.locks import Lock, holder, is_alive, take_lock
from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import CorruptArtifact

MANIFEST = "manifest.json"
NOTES = "notes.json"
BLOB_BYTES = 2**20
"""Files of at least this size are stored once by content."""
LIMIT_BYTES = 20 * 2**30
FULL_BYTES = 2**16
"""A disk with less room is full."""
OLD_SECONDS = 30 * 86400
"""Locks and workspaces unused for so long are deleted."""
KINDS = ("network", "kernels", "tuning", "build")
RECORDS = "records"


def default_root() -> Path:
    """Return the cache folder: ``$DLAS_CACHE``, else ``dlas`` in the user's cache folder."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("DLAS_CACHE") or user / "dlas")


def held_keys(root: Path, kind: str) -> frozenset[str]:
    """Return the keys of a cache's artifacts of a kind; nothing is changed, and the cache need not exist."""
    try:
        return frozenset(os.listdir(root / kind))
    except FileNotFoundError:
        return frozenset()


@dataclass(frozen=True)
class Artifact:
    """A finished folder, with the facts that its step recorded."""

    kind: str
    key: str
    folder: Path
    facts: dict[str, Any]
    files: dict[str, tuple[int, str]]

    @property
    def bytes(self) -> int:
        """Size of its files together."""
        return sum(size for size, _ in self.files.values())

    def verify(self) -> None:
        """Compare every file's content with the manifest.

        Raises
        ------
        CorruptArtifact
        """
        for name, (_, digest) in self.files.items():
            try:
                same = file_digest(self.folder / name) == digest
            except OSError as error:
                raise CorruptArtifact(f"{self.kind} {self.key}: {name}: {error.strerror}") from None
            if not same:
                raise CorruptArtifact(f"{self.kind} {self.key}: {name} has changed since it was written")


class Cache:
    """Artifacts by kind and key.

    Parameters
    ----------
    root : Path
        Created if it does not exist.
    limit : int
        Bytes; beyond it the least recently used artifacts are evicted.

    Raises
    ------
    InputError
        If the folder cannot be created or written to.
    """

    def __init__(self, root: Path, limit: int = LIMIT_BYTES) -> None:
        self.root = root
        self.limit = limit
        make_folder(root, "cache")
        for name in (*KINDS, "blobs", "work", "locks", "aside"):
            make_folder(root / name, "cache's folder")
        self._added = 0

    @property
    def records(self) -> Path:
        """The folder of tuning records: shared by all studies, outside the limit, never evicted."""
        return self.root / RECORDS

    def get(self, kind: str, key: str) -> Artifact | None:
        """Return the artifact if it exists with files of the right sizes, else None."""
        folder = self.root / kind / key
        try:
            raw = json.loads((folder / MANIFEST).read_text())
            files = {name: (int(size), str(digest)) for name, (size, digest) in raw["files"].items()}
            complete = all((folder / name).stat().st_size == size for name, (size, _) in files.items())
            if complete:
                os.utime(folder / MANIFEST)  # the least recently used artifacts are evicted first
                return Artifact(kind, key, folder, raw["facts"], files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        if folder.exists():
            self.discard(kind, key)
        return None

    def is_full(self) -> bool:
        """Return whether there is no room left on its disk."""
        return shutil.disk_usage(self.root).free < FULL_BYTES

    @contextmanager
    def create(self, kind: str, key: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield a folder and a mapping of facts to fill; both become the artifact on exit."""
        aside = self._aside()
        aside.mkdir()
        facts: dict[str, Any] = {}
        try:
            try:
                yield aside, facts
                files = self._seal(aside, facts)
            except Exception as error:
                if self.is_full():  # libraries seldom say so
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.root)) from error
                raise
            target = self.root / kind / key
            try:
                aside.rename(target)
                self._added += sum(size for size, _ in files.values())
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def annotate(self, kind: str, key: str, notes: Mapping[str, Any]) -> None:
        """Store what is known of an artifact after it was made; nothing where it has been removed since."""
        with suppress(FileNotFoundError), replacing(self.root / kind / key / NOTES) as partial:
            partial.write_text(json.dumps(notes))

    def notes(self, kind: str, key: str) -> dict[str, Any]:
        """Return what :meth:`annotate` stored; empty where there is nothing, or it is damaged."""
        try:
            notes = json.loads((self.root / kind / key / NOTES).read_text())
        except (OSError, ValueError):
            return {}
        return notes if isinstance(notes, dict) else {}

    def discard(self, kind: str, key: str) -> None:
        """Remove an artifact in one step, as other processes see it."""
        aside = self._aside()
        with suppress(FileNotFoundError):
            (self.root / kind / key).rename(aside)
        shutil.rmtree(aside, ignore_errors=True)

    def workspace(self, key: str) -> Path:
        """Return the folder where the step that makes an artifact stores checkpoints."""
        folder = self.root / "work" / key
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def drop_workspace(self, key: str) -> None:
        """Remove the workspace of a finished artifact."""
        shutil.rmtree(self.root / "work" / key, ignore_errors=True)

    def try_lock(self, name: str) -> Lock | None:
        """Return the lock for making one artifact; None while another sweep holds it."""
        return take_lock(self._lock_file(name))

    def lock_holder(self, name: str) -> int | None:
        """Return the process that holds such a lock, or held it last; None where that is unknown."""
        return holder(self._lock_file(name))

    def tidy(self) -> None:
        """Remove what killed processes left, old locks and workspaces, and artifacts beyond the limit."""
        for aside in (self.root / "aside").iterdir():
            if not is_alive(int(aside.name.partition("-")[0])):
                shutil.rmtree(aside, ignore_errors=True)
        for path in [*(self.root / "locks").iterdir(), *(self.root / "work").iterdir()]:
            if time.time() - path.stat().st_mtime > OLD_SECONDS:
                path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
        self._added = self.limit
        self.evict()

    def evict(self) -> None:
        """Evict artifacts beyond the limit; checks only after a tenth of the limit was added."""
        if self._added < self.limit // 10:
            return
        self._added = 0
        artifacts = sorted(self._artifacts())
        total = sum(size for _, size, _, _ in artifacts)
        for _, size, kind, key in artifacts:
            if total <= self.limit:
                break
            self.discard(kind, key)
            total -= size
        for blob in (self.root / "blobs").iterdir():
            with suppress(FileNotFoundError):
                if blob.stat().st_nlink == 1:
                    blob.unlink()

    def _artifacts(self) -> Iterator[tuple[float, int, str, str]]:
        """Yield (last use, bytes, kind, key) of every artifact."""
        for kind in KINDS:
            for folder in (self.root / kind).iterdir():
                with suppress(OSError):
                    used = (folder / MANIFEST).stat().st_mtime
                    yield used, sum(f.stat().st_size for f in folder.iterdir()), kind, folder.name

    def _lock_file(self, name: str) -> Path:
        return self.root / "locks" / name

    def _aside(self) -> Path:
        return self.root / "aside" / f"{os.getpid()}-{uuid.uuid4().hex}"

    def _seal(self, folder: Path, facts: dict[str, Any]) -> dict[str, tuple[int, str]]:
        """Write the manifest; not synced to disk, since a damaged artifact is detected and made again."""
        files = {}
        for path in sorted(folder.iterdir()):
            files[path.name] = (path.stat().st_size, file_digest(path))
            if files[path.name][0] >= BLOB_BYTES:
                self._share(path, files[path.name][1])
        (folder / MANIFEST).write_text(json.dumps({"files": files, "facts": facts}, indent=1))
        return files

    def _share(self, path: Path, digest: str) -> None:
        """Make ``path`` a hard link to the one copy of its content."""
        blob = self.root / "blobs" / digest
        with suppress(OSError):  # a file system without hard links keeps the copy
            if blob.exists() and file_digest(blob) == digest:
                link = path.with_name(path.name + ".link")
                os.link(blob, link)
                link.replace(path)
            else:
                link = self._aside()
                os.link(path, link)
                link.replace(blob)
