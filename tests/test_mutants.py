"""Files from elsewhere, damaged in thousands of ways, are refused in one line or read as they are."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlas.errors import InputError
from tests.fixtures import guarded
from tests.fixtures.foreign_files import KINDS
from tests.fixtures.guarded import run, run_apart

IN_ALL = 300
"""Mutants that are read in a few seconds."""
OF_A_KIND = 10_000
KEPT = "DLAS_MUTANTS"
"""The environment variable that names a folder for mutants that were handled badly."""


def test_a_few_mutants_of_every_kind_are_handled_well(tmp_path: Path) -> None:
    for place, kind in enumerate(KINDS):
        count = len(range(place, IN_ALL, len(KINDS)))
        handled(kind, count, apart=False, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_handled_well(kind: str, tmp_path: Path) -> None:
    handled(kind, OF_A_KIND, apart=True, folder=tmp_path)


def write(folder: Path) -> None:
    (folder / "new").touch()


def refuse(message: str) -> None:
    raise InputError(message)


@pytest.mark.parametrize(
    ("read", "verdict", "why"),
    [
        (lambda folder: None, "accepted", ""),
        (lambda folder: refuse("no study"), "refused", "no study"),
        (lambda folder: refuse("no\nstudy"), "bad", "several lines"),
        (lambda folder: refuse("\x1b[31m"), "bad", "control characters"),
        (lambda folder: refuse("no study " * 1_000), "bad", "9,000 characters"),
        (lambda folder: [][0], "bad", "IndexError"),
        (lambda folder: sys.exit(3), "bad", "SystemExit"),
        (lambda folder: time.sleep(5), "bad", "TooLong"),
        (write, "bad", "it wrote"),
        (lambda folder: np.ones(64 << 20, np.uint8), "bad", "MiB"),
    ],
)
def test_what_is_handled_badly_is_found(
    read: Callable[[Path], Any], verdict: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "MOST_SECONDS", 0.2)
    monkeypatch.setattr(guarded, "MOST_KIB", most := 32 << 10)
    held = np.ones(max(0, peak_kib() - resident_kib() - most // 2) << 10, np.uint8) if why == "MiB" else None
    found, said = guarded.judged(lambda: read(tmp_path), InputError, tmp_path)
    assert found == verdict and why in said
    del held


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 10


def handled(kind: str, count: int, apart: bool, folder: Path) -> None:
    """Read the mutants of the first seeds; some of them must be refused and some accepted, and none else."""
    kept, here = Path(os.environ.get(KEPT, folder / "kept")).resolve() / kind, folder / kind
    for each in (kept, here):
        each.mkdir(parents=True, exist_ok=True)
    found = run_apart(kind, count, here, kept) if apart else run(kind, range(count), here, kept)
    assert not found["bad"], (
        f"{found['bad']} mutants were handled badly; they are in {kept}, and why.txt tells how"
    )
    assert found["refused"] + found["accepted"] == count and min(found["refused"], found["accepted"]) > 0, (
        found
    )
