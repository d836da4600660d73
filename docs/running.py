"""Running the blocks of a page, in order, in one copy of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx

from docs.blocks import Block
from docs.building.places import ROOT
from tests.fixtures.onnx_graphs import small_graph

COMMANDS = {
    "shell": lambda text: ["bash", "-e", "-o", "pipefail", "-c", text],
    "python": lambda text: [sys.executable, "-c", text],
}
"""How blocks of a language are run."""
MAKE = """#!/bin/sh
# Targets that install, or run the tests, are only looked up.
case "$1" in quickstart) ;; *) set -- -n "$@" ;; esac
exec {make} STAMP=setup.cfg BIN={programs} "$@"
"""


class Failed(Exception):
    """A block ended with an error, and printed this."""


def copy(to: Path) -> Path:
    """Return a copy of the repository, with a network of the user's own: ``network.onnx``."""
    unwanted = shutil.ignore_patterns(".*", "results", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, to, ignore=unwanted, symlinks=True)
    onnx.save(small_graph(size=32), to / "network.onnx")
    return to


def environment(scratch: Path, columns: int = 200) -> dict[str, str]:
    """Return variables under which ``make`` and ``pip`` change nothing here, and need no network."""
    make, programs = shutil.which("make"), Path(sys.executable).parent
    if make is None:
        raise Failed("`make` is not installed")
    shim = scratch / "programs/make"
    shim.parent.mkdir(parents=True)
    shim.write_text(MAKE.format(make=make, programs=programs))
    shim.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{shim.parent}:{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "DLAS_CACHE": str(scratch / "cache"),
        "COLUMNS": str(columns),
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_DEPS": "1",
        "PIP_TARGET": str(scratch / "site"),
    }


def run(block: Block, folder: Path, variables: dict[str, str]) -> str:
    """Run a block, or write the file that it is, and return what it printed.

    Raises
    ------
    Failed
        If its exit status is not 0.
    """
    if block.file is not None:
        (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.file).write_text(block.text)
        return ""
    done = subprocess.run(
        COMMANDS[block.language](block.text),
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Failed(done.stdout)
    return done.stdout
