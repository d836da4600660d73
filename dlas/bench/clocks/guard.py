"""Put clocks back as they were found, when the process that set them is done or gone, whatever ended it.

This file is run alone, as ``python guard.py RECORD ROOT HOLDER PATHS...``, and imports nothing of this
package.  It waits until its standard input says something or the process HOLDER has ended, and then restores
what RECORD says.  It inherits the lock on the clocks: nobody else sets them before it is done.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

LOOKS_S = 0.5
"""How often it looks for its parent where the kernel cannot wait for a process (before Linux 5.3)."""
MOST_BYTES = 2**20
"""Of a record."""
KEYS = {"kind", "place", "found", "value", "state", "applied"}


class Way(Protocol):
    """How settings of a kind are read and written."""

    def read(self, place: str) -> str | None:
        """Return what is set, None where that cannot be known."""

    def write(self, place: str, text: str | None) -> None:
        """Set it; the device refuses with an OSError."""


@dataclass
class SysfsFiles:
    """Files of /sys below a root."""

    root: Path

    def read(self, place: str) -> str | None:
        """Return what a file says.

        Raises
        ------
        OSError
        """
        return (self.root / place).read_text(errors="replace").strip()

    def write(self, place: str, text: str | None) -> None:
        """Write to a file, which is never created.

        Raises
        ------
        OSError
            If the kernel refuses.
        """
        descriptor = os.open(self.root / place, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{text}\n".encode())
        finally:
            os.close(descriptor)


class NvmlLocks:
    """Locked clocks of NVIDIA's GPUs: places are ``UUID/Gpu`` and ``UUID/Memory``, values MHz.

    NVML does not tell which clocks are locked; an empty value resets a lock.

    Parameters
    ----------
    library : module, optional
        By default ``pynvml``, imported when it is first needed.
    """

    def __init__(self, library: Any = None) -> None:
        self._library = library

    def read(self, place: str) -> str | None:
        """Return None: it is not known."""
        return None

    def write(self, place: str, text: str | None) -> None:
        """Lock a clock, or reset the lock.

        Raises
        ------
        OSError
            If the driver refuses, or is not there.
        """
        if self._library is None:
            self._library = importlib.import_module("pynvml")
            self._library.nvmlInit()
        uuid, _, clock = place.rpartition("/")
        try:
            handle = self._library.nvmlDeviceGetHandleByUUID(uuid)
            if text:
                getattr(self._library, f"nvmlDeviceSet{clock}LockedClocks")(handle, int(text), int(text))
            else:
                getattr(self._library, f"nvmlDeviceReset{clock}LockedClocks")(handle)
        except self._library.NVMLError as error:
            raise OSError(0, f"NVML says {error}", place) from None


@dataclass
class ClockSetting:
    """A setting that is changed, and how far that has come."""

    kind: str
    """``file`` or ``nvml``."""
    place: str
    """A file's path below the root."""
    found: str | None
    """What to put back; None where that comes back with another setting, as a governor's own clock does."""
    value: str
    """What is written."""
    state: str = "planned"
    """``planned``, ``writing`` or ``written``."""
    applied: str | None = None
    """What it was after it was written."""


@dataclass
class ClockRecord:
    """What was found and is changed, in the order of writing, in a file that outlives the process."""

    path: Path
    settings: list[ClockSetting]
    boot: str | None
    """Which start of the machine they belong to: the next one resets them."""
    root: str = "/"
    """The folder that holds sys."""

    def save(self, lasting: bool = False) -> None:
        """Replace the file at once; ``lasting`` even if the power fails.

        A process that is killed does not lose what it wrote, so only the first write has to be lasting.
        """
        partial = self.path.with_suffix(".partial")
        with partial.open("w") as file:
            settings = [vars(each) for each in self.settings]
            file.write(json.dumps({"root": self.root, "boot": self.boot, "settings": settings}))
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(partial, self.path)


def load(path: Path) -> ClockRecord:
    """Return the record in a file.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is none, or names a file that is not below ``sys``.
    """
    with path.open("rb") as file:
        told = json.loads(file.read(MOST_BYTES))
    if not isinstance(told, dict) or not isinstance(told.get("settings"), list):
        raise ValueError("no settings")
    root = told.get("root")
    if not isinstance(root, str) or not os.path.isabs(root):
        raise ValueError("no folder that holds sys")
    for each in told["settings"]:
        texts = each.values() if isinstance(each, dict) and each.keys() == KEYS else [0]
        if not all(text is None or isinstance(text, str) for text in texts):
            raise ValueError("a setting that is none")
        parts = str(each["place"]).split("/")
        if each["kind"] not in ("file", "nvml") or (
            each["kind"] == "file" and (parts[0] != "sys" or ".." in parts)
        ):
            raise ValueError("a setting that is not the kernel's")
    return ClockRecord(path, [ClockSetting(**each) for each in told["settings"]], told.get("boot"), root)


def restore(record: ClockRecord, ways: Mapping[str, Way] | None = None) -> list[str]:
    """Put back what a record says, and delete it once all of it is done.

    The order is that of writing, reversed: the states between are those that were passed on the way, so
    that a lower limit is never above the upper one.  Whoever calls it holds the lock on the clocks.

    Returns
    -------
    list of str
        What somebody else changed meanwhile, which is left, and what cannot be restored, which stays in the
        record.
    """
    root = Path(record.root)
    ways = ways or {"file": SysfsFiles(root), "nvml": NvmlLocks()}
    told: list[str] = []
    left: list[ClockSetting] = []
    if record.boot == boot_id(root):
        for setting in reversed(record.settings):
            try:
                told += _put_back(setting, ways[setting.kind], root)
            except (OSError, ImportError) as error:
                left.insert(0, setting)
                told.append(f"{setting.place} cannot be set back to {setting.found!r}: {why(error)}")
    record.settings = left
    if left:
        record.save()
    else:
        record.path.unlink(missing_ok=True)
    return told


def _put_back(setting: ClockSetting, way: Way, root: Path) -> list[str]:
    """Put one setting back, and return what there is to tell."""
    if setting.state == "planned" or setting.found is None:
        return []
    now = way.read(setting.place)
    if now == setting.found:
        return []
    # Killed while it was being written, what it says is what the kernel has made of it.
    ours = setting.state == "writing" or now in (None, setting.value, setting.applied)
    if not ours and not _cooled(now, setting.applied, root):
        return [f"{setting.place} stays at {now!r}: somebody has changed it from {setting.applied!r}"]
    way.write(setting.place, setting.found)
    return []


def _cooled(now: str | None, applied: str | None, root: Path) -> bool:
    """Return whether a limit is lower than it was set because the kernel cools the machine."""
    if not (now or "").isdigit() or not (applied or "").isdigit() or int(now or 0) >= int(applied or 0):
        return False
    for state in (root / "sys/class/thermal").glob("cooling_device*/cur_state"):
        try:
            cools = int(state.read_text()) > 0 and "fan" not in state.with_name("type").read_text().lower()
        except (OSError, ValueError):
            continue
        if cools:
            return True
    return False


def tell(path: Path, lines: list[str]) -> None:
    """Write lines beside a record, for whoever looks at it next."""
    if lines:
        with path.with_suffix(".told").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


def boot_id(root: Path) -> str | None:
    """Return what names this start of the machine."""
    try:
        return (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def why(error: Exception) -> str:
    """Return what the kernel says of an error."""
    return getattr(error, "strerror", None) or str(error)


def main(path: Path, holder: int) -> int:
    """Wait for the holder of the clocks, and restore them."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # what ends a whole group of processes must not end it first
    _wait(holder)
    try:
        told = restore(load(path))
    except FileNotFoundError:
        return 0
    tell(path, told)
    return 0


def _wait(holder: int) -> None:
    """Wait until the holder says that it is done, or has ended."""
    try:
        ended = [os.pidfd_open(holder)]
    except ProcessLookupError:
        return
    except OSError:
        ended = []
    while os.getppid() == holder:
        if select.select([0, *ended], [], [], None if ended else LOOKS_S)[0]:
            return


if __name__ == "__main__":
    sys.path[:] = sys.argv[3:]
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
