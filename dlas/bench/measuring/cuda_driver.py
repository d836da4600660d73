"""What NVIDIA's driver says of its first GPU.  It is asked in a process of its own, as a script.

A process that has asked cannot fork children that use the GPU, and sweeps fork one for each step.
So this file imports nothing but the standard library, and nothing imports it for its functions.
"""

from __future__ import annotations

import ctypes
import json
from typing import Any

LIBRARY = "libcuda.so.1"
NO_DEVICE = 100
"""The driver's error where there is no GPU, or where CUDA_VISIBLE_DEVICES hides all."""
ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "threads_a_block": 1,
    "shared_bytes": 8,
    "registers_a_block": 12,
    "warp": 10,
    "processors": 16,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
}
"""Numbers of ``CUdevice_attribute`` in cuda.h."""


class DriverError(Exception):
    """A call of the driver failed."""


def ask() -> dict[str, Any]:
    """Return the first GPU's ``name``, ``memory_bytes``, ``cuda`` (the driver's version) and attributes.

    Raises
    ------
    DriverError
        The message says why there is none.
    """
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError:
        raise DriverError(f"no NVIDIA driver is installed: {LIBRARY} is not found") from None
    version, device = ctypes.c_int(), ctypes.c_int()
    _call(driver, "cuInit", 0)
    _call(driver, "cuDriverGetVersion", ctypes.byref(version))
    _call(driver, "cuDeviceGet", ctypes.byref(device), 0)
    name, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
    _call(driver, "cuDeviceGetName", name, len(name), device)
    _call(driver, "cuDeviceTotalMem_v2", ctypes.byref(size), device)
    facts: dict[str, Any] = {
        "name": name.value.decode(errors="replace"),
        "memory_bytes": size.value,
        "cuda": [version.value // 1000, version.value % 1000 // 10],
    }
    for fact, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        _call(driver, "cuDeviceGetAttribute", ctypes.byref(value), number, device)
        facts[fact] = value.value
    return facts


def _call(driver: ctypes.CDLL, function: str, *arguments: Any) -> None:
    """Call a function of the driver.

    Raises
    ------
    DriverError
        With the driver's own name of the error.
    """
    error = getattr(driver, function)(*arguments)
    if error == NO_DEVICE:
        raise DriverError("the driver finds no GPU, or CUDA_VISIBLE_DEVICES hides all")
    if error:
        named = ctypes.c_char_p()
        driver.cuGetErrorName(error, ctypes.byref(named))
        raise DriverError(f"the driver's {function} fails with {(named.value or b'?').decode()} ({error})")


def main() -> None:
    """Print the facts, or the reason why there are none, in JSON."""
    try:
        print(json.dumps(ask()))
    except DriverError as error:
        print(json.dumps({"reason": str(error)}))


if __name__ == "__main__":
    main()
