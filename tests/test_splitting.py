"""The tests in parts: each is in exactly one, parts are alike, and what is no part is one message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.package import ROOT
from tests.fixtures.splitting import Part

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(101))
def test_quick(n): pass

@pytest.mark.slow
@pytest.mark.parametrize("n", range(67))
def test_slow(n): pass

@pytest.mark.ci
@pytest.mark.parametrize("n", range(7))
def test_with_packages(n): pass
"""


WITH_OPTIONS = """
import pytest, sys
settings, folder, *all_options = sys.argv[1:]
always = ["--collect-only", "-q", "-p", "no:cacheprovider", "-c", settings, "--rootdir", folder]
for options in all_options:
    print("options:", options, flush=True)
    pytest.main([*always, *options.split(";"), folder])
"""
"""A script that collects a folder's tests with each of its last arguments: options between semicolons."""
REFUSED = "not K/N: 1/4, 2/4, 3/4 and 4/4 are four parts"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with many tests, which are collected as this project's are."""
    (tmp_path / "test_many.py").write_text(TESTS)
    (tmp_path / "conftest.py").symlink_to(ROOT / "tests/conftest.py")
    return tmp_path


def collected(folder: Path, *options: str) -> list[list[str]]:
    """Return what pytest prints with each of several options."""
    ran = subprocess.run(
        [sys.executable, "-c", WITH_OPTIONS, ROOT / "setup.cfg", folder, *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    return [each.splitlines()[1:] for each in ran.stdout.split("options:")[1:]]


def listed(lines: list[str]) -> list[str]:
    return [line for line in lines if "::" in line]


def test_every_test_is_in_exactly_one_of_the_parts_which_are_alike(folder: Path) -> None:
    printed = collected(folder, "-m;", *(f"-m;;--part={number}/4" for number in (1, 2, 3, 4)))
    everything, *parts = map(listed, printed)
    assert len(everything) == 101 + 67 + 7
    assert sorted(test for part in parts for test in part) == sorted(everything)
    for part in parts:
        assert part == [test for test in everything if test in part], "their order stays"
        quick = sum("quick" in test for test in part)
        assert abs(quick - 101 / 4) <= 8 and abs(len(part) - quick - (67 + 7) / 4) <= 8


def test_marks_are_heeded_before_tests_are_dealt_out_and_no_such_part_is_one_line(folder: Path) -> None:
    quick, alone, first, second, refused = collected(
        folder, "--no-header", "--part=1/1", "-m;slow;--part=1/2", "-m;slow;--part=2/2", "--part=5/4"
    )
    assert len(listed(quick)) == len(listed(alone)) == 101
    assert sorted((len(listed(first)), len(listed(second)))) == [32, 35]
    assert [line for line in refused if line] == [f"ERROR: PART is '5/4', {REFUSED}"]


@pytest.mark.parametrize(
    "written", ["0/4", "5/4", "4", "1/0", "a/b", "1/4/2", "-1/4", "1.5/4", " 1/4", "²/4"]
)
def test_what_is_no_part_is_refused(written: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"^PART is .*, {REFUSED}$"):
        Part.read(written)
