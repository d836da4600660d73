"""What a build takes of memory: the peak of a child process, the same in equal runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.bench.measuring.memory import AllocatedMemory
from dlas.bench.processes.inline import Inline
from dlas.sweep.engine.steps.memory import SHARED_PROCESS
from dlas.sweep.rows.results import Row
from tests.fixtures.engine import rows, run, study_of

MB = 10**6
WEIGHTS, SCRATCH = 20 * MB, 50 * MB
STUB = f'{{name = "tests.fixtures.stubs:StubCompiler", weight_bytes = {WEIGHTS}, scratch_bytes = {SCRATCH}}}'
TORCH = """
dataset = [{name = "random", size = 32, classes = 10, images = 8}]
model = ["resnet18"]
algorithm = ["direct"]
compiler = ["torch_eager"]
hardware = [{name = "local_cpu", threads = 1}]
batch = [8]
task = ["inference", "training"]
"""

pytestmark = pytest.mark.skipif(
    AllocatedMemory.start() is None, reason="this system does not tell a process's peak memory"
)


def point(folder: Path, study: str, **options: object) -> Row:
    """Return the row of the only point of a study."""
    folder.mkdir()
    run(study_of(study), folder, **options)  # type: ignore[arg-type]
    (row,) = rows(folder)
    assert row.status == "ok", row.reason
    return row


def test_the_peak_is_what_a_program_holds_and_what_it_frees_again(tmp_path: Path) -> None:
    first, again = (point(tmp_path / name, f"compiler = [{STUB}]") for name in ("first", "again"))
    for row in (first, again):
        assert row.memory_note is None
        assert row.loading_memory_bytes == pytest.approx(WEIGHTS, rel=0.02)
        assert row.peak_memory_bytes == pytest.approx(WEIGHTS + SCRATCH, rel=0.005)
        assert row.seconds["memory"] > 0
        assert row.resident_bytes is not None
    assert first.peak_memory_bytes == pytest.approx(again.peak_memory_bytes, rel=0.005)


def test_nothing_is_measured_in_the_sweeps_own_process(tmp_path: Path) -> None:
    row = point(tmp_path / "here", f"compiler = [{STUB}]", runner=Inline)
    assert row.peak_memory_bytes is None and row.loading_memory_bytes is None
    assert row.memory_note == SHARED_PROCESS
