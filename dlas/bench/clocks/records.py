"""Where the clocks of devices are recorded and locked, and restoring what a killed process has left."""

from __future__ import annotations

import fcntl
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from dlas.bench.clocks.guard import Way, load, restore, why
from dlas.bench.store.locks import Lock, holder, take_lock
from dlas.bench.store.replacing import make_folder
from dlas.errors import InputError, one_line

Say = Callable[[str], None]


def default_folder() -> Path:
    """Return the folder of records in the user's cache folder.

    It does not follow ``$DLAS_CACHE``: sweeps with caches of their own share the device.
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dlas" / "clocks"


@dataclass(frozen=True)
class DeviceRecords:
    """The records of one device: a file for each process that has set its clocks, and a lock for all."""

    folder: Path

    @classmethod
    def of(cls, folder: Path, device: str) -> DeviceRecords:
        """Return those of a device by its name; the folder is created.

        Raises
        ------
        InputError
            If it cannot be written to.
        """
        own = cls(folder / f"device-{quote(device, safe='')}")
        make_folder(own.folder, "folder of clocks")
        return own

    @property
    def lock(self) -> Path:
        """The file that is locked."""
        return self.folder / "lock"

    def new(self) -> Path:
        """Return where the next record is written."""
        return self.folder / f"{uuid.uuid4().hex}.json"

    def restore_all(self, ways: Mapping[str, Way] | None = None) -> list[str]:
        """Restore what is recorded, and return what there is to tell; the caller holds the lock.

        Raises
        ------
        InputError
            If a record is damaged.
        """
        told = self.told()
        for path in sorted(self.folder.glob("*.json")):
            try:
                told += restore(load(path), ways)
            except (OSError, ValueError) as error:
                raise InputError(
                    f"cannot restore clocks from {str(path)!r}: {one_line(why(error))}; "
                    "delete it once they are as they should be"
                ) from None
        for partial in self.folder.glob("*.partial"):
            partial.unlink(missing_ok=True)
        return told

    def told(self) -> list[str]:
        """Return what guards have to tell, once."""
        lines: list[str] = []
        for path in sorted(self.folder.glob("*.told")):
            lines += path.read_text(errors="replace").splitlines()
            path.unlink(missing_ok=True)
        return lines

    def left(self) -> bool:
        """Return whether something could not be restored."""
        return any(self.folder.glob("*.json"))


def recover(folder: Path | None = None, ways: Mapping[str, Way] | None = None) -> list[str]:
    """Restore the clocks that were set by processes that were killed together with their guards.

    Devices whose clocks a process holds now are left alone.

    Parameters
    ----------
    folder : Path, optional
        Of the records; by default :func:`default_folder`.
    ways : mapping, optional
        How settings are read and written, by kind.

    Returns
    -------
    list of str
        What somebody else changed meanwhile, which is left, and what cannot be restored.

    Raises
    ------
    InputError
        If a record is damaged.
    """
    told = []
    for own in sorted((folder or default_folder()).glob("device-*")):
        records = DeviceRecords(own)
        lock = take_lock(records.lock)
        if lock is None:
            continue
        try:
            told += records.restore_all(ways)
        finally:
            lock.release()
    return told


@contextmanager
def turn(records: DeviceRecords, device: str, say: Say) -> Iterator[int]:
    """Hold the lock on the clocks of a device, after waiting for others, and yield its descriptor.

    A process that inherits the descriptor holds the lock too, and keeps it when this one is killed.
    """
    descriptor = os.open(records.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    lock = Lock(descriptor)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for process {holder(records.lock) or '?'}, which holds the clocks of {device}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        lock.release()
