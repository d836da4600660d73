"""Run a program that TVM built once, in a process with as little else as can be: what valgrind counts.

    python run_once.py FOLDER IMAGES.npy

It imports neither this package nor TVM's Python, which alone takes valgrind ten minutes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

CPU, POOLED = (1, 2)
"""DLPack's number of processors, and TVM's of its usual allocator."""
ALIGNMENT = 64
"""Bytes that generated code expects arrays to begin at a multiple of."""


def aligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy that begins where generated code expects it."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copy: np.ndarray[Any, Any] = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def main(folder: Path, images: Path) -> None:
    """Load the program and run it once."""
    # tvm_ffi imports torch where it is installed.
    sys.modules["torch"] = None  # type: ignore[assignment]
    import tvm_ffi

    spec = importlib.util.find_spec("tvm")
    assert spec is not None and spec.submodule_search_locations is not None
    ctypes.CDLL(f"{spec.submodule_search_locations[0]}/lib/libtvm_runtime.so", ctypes.RTLD_GLOBAL)
    machine = tvm_ffi.load_module(str(folder / "library.so"))["vm_load_executable"]()
    machine["vm_initialization"](CPU, 0, POOLED)
    names = json.loads((folder / "program.json").read_text())["parameters"]
    arrays = load_file(folder / "parameters.safetensors")
    given = [np.load(images, allow_pickle=False), *(arrays[name] for name in names)]
    machine["main"](*(tvm_ffi.from_dlpack(aligned(array)) for array in given))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
