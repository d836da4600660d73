"""Pages that are joined, so that forks take less."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.fixtures.package import ROOT

JOIN = """
import re
from pathlib import Path
from dlas.bench.processes.pages import join_pages
def huge():
    found = re.search(r"AnonHugePages: *([0-9]+)", Path("/proc/self/smaps_rollup").read_text())
    return int(found[1])
held = bytearray(range(256)) * 2**18
before = huge()
join_pages()
print(before, huge(), held == bytearray(range(256)) * 2**18)
"""


def test_pages_are_joined_and_hold_what_they_held() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", JOIN],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    before, after, same = ran.stdout.split()
    assert same == "True"
    if before == after:
        pytest.skip("this system joins no pages")
    assert int(after) - int(before) >= 32 * 2**10, "most of 64 MiB, in KiB"
