"""Files from elsewhere, damaged in thousands of ways, are refused in one line or read as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
@pytest.mark.parametrize("kind", KINDS)
def test_mutants_are_handled_well(kind: str, tmp_path: Path) -> None:
    handled(kind, OF_A_KIND, apart=True, folder=tmp_path)


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
