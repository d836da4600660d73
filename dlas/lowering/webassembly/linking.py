"""The linker: LLVM's own of the distribution, or the one in PyPI's package ``ziglang``."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dlas.errors import MissingPackage

STACK_BYTES = 2**18
"""Size of a module's stack, above what :data:`dlas.lowering.machine_code.STACK_BYTES` lets a kernel take."""
LINK_S = 120.0
MISSING = "there is no linker for WebAssembly: pip install 'dlas[web]', or Debian's package lld"


def linker() -> list[str] | None:
    """Return the command of a linker for WebAssembly, None where there is none."""
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "wasm-ld"]
    found = shutil.which("wasm-ld")
    return [found] if found else None


def link(objects: Sequence[Path], exports: Sequence[str], module: Path) -> None:
    """Link objects into a module that imports nothing.

    Raises
    ------
    MissingPackage
        If there is no linker.
    RuntimeError
        With what it says, such as which function is missing.
    """
    command = linker()
    if command is None:
        raise MissingPackage(MISSING)
    options = ["--no-entry", "--export-memory", "--export=__heap_base", "--gc-sections", "--strip-all"]
    options += ["--stack-first", "-z", f"stack-size={STACK_BYTES}"]
    options += [f"--export={name}" for name in exports]
    ran = subprocess.run(
        [*command, *options, "-o", str(module), *map(str, objects)],
        capture_output=True,
        text=True,
        timeout=LINK_S,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(f"the linker for WebAssembly failed: {ran.stderr.strip()}")
