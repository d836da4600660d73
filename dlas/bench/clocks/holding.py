"""Hold clocks of a device at what is asked for, and put back what was found, whatever happens meanwhile.

What was found is recorded before anything is changed.  A guard process restores it at the end, or when
this process dies; if both are killed, whoever holds the clocks next restores it, or
:func:`dlas.bench.clocks.records.recover`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dlas.bench.clocks import guard
from dlas.bench.clocks.applied import HeldClocks
from dlas.bench.clocks.domain import ClockDomain
from dlas.bench.clocks.guard import (
    ClockRecord,
    ClockSetting,
    NvmlLocks,
    SysfsFiles,
    Way,
    boot_id,
    restore,
    why,
)
from dlas.bench.clocks.nvpmodel import PowerMode
from dlas.bench.clocks.records import DeviceRecords, Say, default_folder, turn
from dlas.bench.clocks.request import ClockRequest
from dlas.errors import Unsupported, one_line

SETTLES_S = 0.2
"""How long a clock may take to become what it is set to."""
RESTORES_S = 10.0
"""How long a guard may take to restore."""


@contextmanager
def hold(
    request: ClockRequest,
    domains: Mapping[str, ClockDomain],
    device: str,
    say: Say,
    *,
    folder: Path | None = None,
    root: Path = Path("/"),
    mode: PowerMode | None = None,
    ways: Mapping[str, Way] | None = None,
    settles_s: float = SETTLES_S,
) -> Iterator[HeldClocks]:
    """Set clocks, hold them, and restore what was found; another one who wants to hold them waits.

    Parameters
    ----------
    request : ClockRequest
        Nothing happens if it asks for nothing.
    domains : mapping
        The clocks of the device by name: :func:`dlas.bench.clocks.finding.find_clocks`.
    device : str
        Its name: one at a time holds the clocks of a device.
    say : callable
        Told, in a line each, for whom this waits, and what could not be restored or was left to others.
    folder : Path, optional
        Of the records; by default in the user's cache folder.
    root : Path, optional
        The folder that holds sys.
    mode : PowerMode, optional
        The power mode that the device is in.
    ways : mapping, optional
        How this process reads and writes settings, by kind; the guard uses its own.
    settles_s : float, optional
        How long to wait for clocks to be what they are set to, which they need not become.

    Yields
    ------
    HeldClocks

    Raises
    ------
    InputError
        If a clock is no step of the device, or the folder cannot be written to.
    Unsupported
        If the device lacks a clock, its power mode caps it, or it refuses; what was found is restored.
    """
    request.check(domains, mode)
    held = HeldClocks(request.by_domain(), domains)
    if not held.requested_hz:
        yield held
        return
    records = DeviceRecords.of(folder or default_folder(), device)
    with turn(records, device, say) as lock:
        _restore_left(records, ways, say)
        ways = ways or {"file": SysfsFiles(root), "nvml": NvmlLocks()}
        record = _planned(held, records.new(), root)
        keeper = None
        try:
            keeper = _start_guard(record, lock)
            _write(record, ways)
            held.settle(settles_s)
            yield held
        finally:
            with _uninterrupted():
                _end(keeper, record, ways)
                held.told += records.told()
                for line in held.told:
                    say(line)


def _restore_left(records: DeviceRecords, ways: Mapping[str, Way] | None, say: Say) -> None:
    """Restore what earlier processes have left.

    Raises
    ------
    Unsupported
        If that is not possible: what was found would be lost.
    """
    told = records.restore_all(ways)
    for line in told:
        say(line)
    if records.left():
        raise Unsupported(f"clocks of an earlier run cannot be restored: {one_line('; '.join(told))}")


def _planned(held: HeldClocks, path: Path, root: Path) -> ClockRecord:
    """Return the record of what will be changed, once it is on the disk.

    Raises
    ------
    Unsupported
        If a setting cannot be read.
    """
    try:
        plans = [held.domains[name].plan(hz) for name, hz in held.requested_hz.items()]
        settings = [setting for plan in plans for setting in plan]
        record = ClockRecord(path, settings, boot_id(root), str(root.absolute()))
        record.save(lasting=True)
    except (OSError, ValueError) as error:
        raise Unsupported(f"clocks cannot be set: {one_line(str(error))}") from None
    return record


def _start_guard(record: ClockRecord, lock: int) -> subprocess.Popen[bytes]:
    """Start what restores the record when this process is done or dead."""
    file = str(guard.__file__)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", file, str(record.path), str(os.getpid()), *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
    )


def _write(record: ClockRecord, ways: Mapping[str, Way]) -> None:
    """Change the settings one by one, and record how far it has come.

    Raises
    ------
    Unsupported
        If the device refuses one.
    """
    for setting in record.settings:
        way = ways[setting.kind]
        setting.state = "writing"
        record.save()
        try:
            way.write(setting.place, setting.value)
        except (OSError, ImportError) as error:
            setting.state = "planned"
            record.save()
            said = f"the device refuses {setting.value!r} in {setting.place}: {one_line(why(error))}"
            raise Unsupported(said) from None
        setting.applied = _read_back(setting, way)
        setting.state = "written"
        record.save()


def _read_back(setting: ClockSetting, way: Way) -> str | None:
    """Return what a setting says after it was written, None where it cannot be read."""
    try:
        return way.read(setting.place)
    except OSError:
        return None


def _end(keeper: subprocess.Popen[bytes] | None, record: ClockRecord, ways: Mapping[str, Way]) -> None:
    """Let the guard restore, or do it here if it was killed."""
    if keeper is not None:
        try:
            keeper.communicate(b".", RESTORES_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
    if (keeper is None or keeper.returncode) and record.path.exists():
        guard.tell(record.path, restore(record, ways))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
        if pressed:
            signal.raise_signal(signal.SIGINT)
