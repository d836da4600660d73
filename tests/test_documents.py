"""Every command and every block of code in the README and in CONTRIBUTING runs, in order, in one folder.

A ``shell`` block is run line by line, a ``python`` block as a script; a block that starts with
a file's name in a comment is written to that file. A ``text`` block shows what the block
before it printed: all of its words must be there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest

from tests.fixtures.onnx_graphs import small_graph
from tests.fixtures.package import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./]+\.(?:toml|py))\n")
MAKE = """#!/bin/sh
# Targets that install, or run these tests, are only looked up.
case "$1" in quickstart) ;; *) set -- -n "$@" ;; esac
exec {make} STAMP=setup.cfg BIN={programs} "$@"
"""


COMMANDS = {
    "shell": lambda text: ["bash", "-e", "-o", "pipefail", "-c", text],
    "python": lambda text: [sys.executable, "-c", text],
}
"""How blocks of a language are run; blocks of any other are a mistake."""


class Block(NamedTuple):
    """A fenced block of a document."""

    language: str
    text: str
    line: int


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text()
    for match in BLOCK.finditer(text):
        yield Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of this tree, with a network of the user's own."""
    unwanted = shutil.ignore_patterns(".*", "results", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "tree", ignore=unwanted, symlinks=True)
    onnx.save(small_graph(size=32), tmp_path / "tree/network.onnx")
    return tmp_path / "tree"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return variables under which `make` and `pip` leave this environment as it is, and need no network."""
    make, programs = shutil.which("make"), Path(sys.executable).parent
    assert make is not None
    shim = tmp_path / "programs/make"
    shim.parent.mkdir()
    shim.write_text(MAKE.format(make=make, programs=programs))
    shim.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{shim.parent}:{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "DLAS_CACHE": str(tmp_path / "cache"),
        "COLUMNS": "200",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_DEPS": "1",
        "PIP_TARGET": str(tmp_path / "site"),
    }


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_a_document_runs(name: str, folder: Path, environment: dict[str, str]) -> None:
    printed = ""
    for block in blocks(ROOT / name):
        if block.language == "text":
            missing = words(block.text) - words(printed)
            assert not missing, f"{name}, line {block.line}: {missing} is not in what was printed:\n{printed}"
        elif named := FILE.match(block.text):
            (folder / named[1]).write_text(block.text)
        else:
            done = subprocess.run(
                COMMANDS[block.language](block.text),
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            printed = done.stdout
            assert done.returncode == 0, f"{name}, line {block.line}:\n{printed}"


def words(text: str) -> set[str]:
    """Return the words of a text, without the numbers that differ from run to run."""
    return set(re.findall(r"[A-Za-z_]{3,}", text))
