"""Locked clocks of a GPU, by a library that stands in for ``pynvml`` here and in the guard."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from dlas.bench.clocks.guard import ClockRecord, ClockSetting, NvmlLocks, restore
from dlas.bench.clocks.holding import hold
from dlas.bench.clocks.nvml import find_nvml
from dlas.bench.clocks.request import ClockRequest
from dlas.bench.measuring.nvml import NvmlGpu
from dlas.errors import Unsupported

LIBRARY = '''
"""Keeps what is locked in a file beside it, so that other processes see it."""
import json, pathlib
FILE = pathlib.Path(__file__).with_name("locked.json")
REFUSES = pathlib.Path(__file__).with_name("refuses")
class NVMLError(Exception): pass
def nvmlInit(): pass
def nvmlDeviceGetUUID(handle): return "GPU-1"
def nvmlDeviceGetHandleByUUID(uuid): return uuid
def nvmlDeviceGetSupportedMemoryClocks(handle): return [2619, 1593]
def nvmlDeviceGetSupportedGraphicsClocks(handle, memory): return [1980, 1965, 345] if memory == 2619 else []
def nvmlDeviceGetClockInfo(handle, clock):
    return read().get({1: "Gpu", 2: "Memory"}[clock], 210)
def read(): return json.loads(FILE.read_text()) if FILE.exists() else {}
def keep(clock, mhz):
    if REFUSES.exists(): raise NVMLError("Insufficient Permissions")
    locked = {**read(), clock: mhz}
    FILE.write_text(json.dumps({name: mhz for name, mhz in locked.items() if mhz}))
def nvmlDeviceSetGpuLockedClocks(handle, low, high): assert low == high; keep("Gpu", low)
def nvmlDeviceSetMemoryLockedClocks(handle, low, high): assert low == high; keep("Memory", low)
def nvmlDeviceResetGpuLockedClocks(handle): keep("Gpu", None)
def nvmlDeviceResetMemoryLockedClocks(handle): keep("Memory", None)
'''


@pytest.fixture
def pynvml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "library").mkdir()
    (tmp_path / "library/pynvml.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path / "library")
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield importlib.import_module("pynvml")
    sys.modules.pop("pynvml", None)


def test_a_card_is_locked_and_the_guard_resets_it(pynvml: ModuleType, tmp_path: Path) -> None:
    found = {name: find_nvml(name, NvmlGpu(pynvml, "GPU-1")) for name in ("gpu", "memory")}
    clocks = {name: clock for name, clock in found.items() if clock}
    assert clocks["gpu"].steps_hz().hz == (345e6, 1965e6, 1980e6)
    assert clocks["memory"].steps_hz().hz == (1593e6, 2619e6)
    request = ClockRequest(gpu_hz=345e6, memory_hz=1593e6)
    said: list[str] = []
    with hold(request, clocks, "card", said.append, folder=tmp_path, root=tmp_path, settles_s=0) as held:
        assert pynvml.read() == {"Gpu": 345, "Memory": 1593}
        assert held.read()["gpu"].observed_hz == 345e6
        assert held.read()["gpu"].applied_hz is None
        assert held.read()["memory"].honoured
    assert pynvml.read() == {}
    assert said == []


def test_a_card_that_refuses_is_unsupported(pynvml: ModuleType, tmp_path: Path) -> None:
    clock = find_nvml("gpu", NvmlGpu(pynvml, "GPU-1"))
    assert clock is not None
    (tmp_path / "library/refuses").touch()
    with (
        pytest.raises(Unsupported, match="GPU-1/Gpu: NVML says Insufficient Permissions"),
        hold(
            ClockRequest(gpu_hz=345e6),
            {"gpu": clock},
            "card",
            lambda line: None,
            folder=tmp_path,
            settles_s=0,
        ),
    ):
        pass
    assert not [*tmp_path.rglob("*.json")]  # nothing was locked, so there is nothing to reset


def test_a_guard_without_the_library_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    record = ClockRecord(
        tmp_path / "r.json", [ClockSetting("nvml", "GPU-1/Gpu", "", "345", "written")], None, str(tmp_path)
    )
    (told,) = restore(record, {"nvml": NvmlLocks()})
    assert told.startswith("GPU-1/Gpu cannot be set back to '': ")
    assert record.path.exists()
