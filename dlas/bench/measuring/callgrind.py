"""Instructions of a program, counted by valgrind's callgrind: the same in every run, on a busy machine too.

Valgrind runs each instruction in software, 50 to 100 times slower.  Its counts say nothing of caches,
memory or the instructions that a processor starts in one cycle: more instructions are a reason to look, and
no time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from dlas.errors import Unsupported

TOOL = "valgrind"
INSTALL = "`apt-get install valgrind`"
KERNEL = re.compile(r"__tvm_ffi_(?P<name>\w+)")
"""The symbol of a kernel in a library that TVM wrote."""
FUNCTION = re.compile(r"\((?P<number>\d+)\)(?: (?P<name>.*))?")
"""A function in callgrind's file: a number, and where it is first named its name."""
COST = re.compile(r"[0-9+*-]\S* (?P<cost>\d+)")
"""A line with a cost: where in the source, and how many instructions."""
SHOWN = 300
"""Characters of valgrind's words in an error."""


def missing() -> str | None:
    """Return how to get valgrind where it is not installed, or None."""
    return None if shutil.which(TOOL) else f"{TOOL} is not installed: {INSTALL}"


def count(program: Sequence[str], seconds: float | None = None) -> dict[str, int]:
    """Return the instructions of each kernel of a Python program, those that it calls included.

    Parameters
    ----------
    program : sequence of str
        Arguments of Python: a script that runs a TVM program, with its own.
    seconds : float, optional
        Limit of its time.

    Raises
    ------
    Unsupported
        If valgrind is not installed, knows not an instruction, or takes too long; with its last words.
    """
    if reason := missing():
        raise Unsupported(reason)
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder, "counts")
        command = [TOOL, "--tool=callgrind", f"--callgrind-out-file={counts}", sys.executable, *program]
        # Hashes of texts would change how often tables are searched; one thread calls each kernel's loops.
        surroundings = {**os.environ, "PYTHONHASHSEED": "0", "TVM_NUM_THREADS": "1"}
        try:
            ran = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Unsupported(f"{TOOL} took longer than {seconds:.0f} s") from None
        if ran.returncode or not counts.exists():
            raise Unsupported(f"{TOOL} left with exit code {ran.returncode}: {ran.stderr[-SHOWN:].strip()}")
        with counts.open(encoding="utf-8", errors="replace") as lines:
            return kernels(lines)


def kernels(lines: Iterable[str]) -> dict[str, int]:
    """Return the instructions of each kernel from the lines of a file that callgrind wrote.

    A call's cost includes what is called, and stands in the line after that of the call.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    called = ""
    calls = False
    for line in lines:
        key, _, value = line.rstrip("\n").partition("=")
        if key in ("fn", "cfn"):
            called = _name(value, names)
        elif key == "calls":
            calls = True
        elif calls and (cost := COST.match(line)):
            if kernel := KERNEL.fullmatch(called):
                counts[kernel["name"]] = counts.get(kernel["name"], 0) + int(cost["cost"])
            calls = False
    return counts


def _name(value: str, names: dict[str, str]) -> str:
    """Return a function's name, and remember it by its number."""
    found = FUNCTION.match(value)
    if found is None:
        return value
    if found["name"]:
        # With `--separate-recs` and the like a caller follows after an apostrophe.
        names[found["number"]] = found["name"].partition("'")[0]
    return names.get(found["number"], "")
