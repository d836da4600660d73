"""Help and the list of parts come at once: nothing is imported that takes long."""

from __future__ import annotations

import subprocess
import sys

from dlas.face.cli.app import COMMANDS
from tests.fixtures.package import ROOT

HEAVY = ("torch", "tvm", "pandas", "onnxruntime", "sklearn", "scipy")
RUN = f"""
import sys
from dlas.face.cli import main

for words in sys.argv[1].split(","):
    sys.argv = ["dlas", *words.split()]
    try:
        main()
    except SystemExit as left:
        assert not left.code, words
print([name for name in {HEAVY} if name in sys.modules])
"""


def ran(*commands: str) -> str:
    """Return what commands print, and the slow modules that they have imported, as the last line."""
    run = [sys.executable, "-c", RUN, ",".join(commands)]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_help_imports_nothing_that_takes_long() -> None:
    told = ran("--help", *(f"{name} --help" for name in COMMANDS), "records merge --help")
    assert told.splitlines()[-1] == "[]"
    assert told.count("Usage: ") == len(COMMANDS) + 2


def test_the_list_of_parts_imports_nothing_that_takes_long() -> None:
    told = ran("list", "list model", "list weight_pruning", "list resnet18", "list jetson_agx")
    assert told.splitlines()[-1] == "[]"
    assert told.count("A torchvision classification network.") == 3
