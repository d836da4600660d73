from __future__ import annotations

import errno
import runpy
import signal
from pathlib import Path

import numpy as np
import pytest

from dlas.bench.processes.events import ChildEnd, TaskError
from dlas.bench.processes.outcome import DiskFull, describe_exception, failure
from dlas.errors import CorruptArtifact, MissingData, Unreachable, Unsupported, WrongOutput


class NoSuchKernel(Unsupported):
    """What the author of a part may define."""


def by(error: BaseException) -> ChildEnd:
    return ChildEnd(1, exit=1, raised=describe_exception(error))


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        (ChildEnd(1, exit=-9, stopped="timeout"), "timeout", "build took longer than 5 s"),
        (
            ChildEnd(1, exit=-9, stopped="memory"),
            "failed",
            "the step build used more than the limit of 1 GiB of memory",
        ),
        (
            ChildEnd(1, exit=-9),
            "failed",
            "build was killed by SIGKILL (by hand, or by the system, short of memory)",
        ),
        (ChildEnd(1, exit=-200), "failed", "build was killed by signal 200"),
        (ChildEnd(1, exit=7), "failed", "build left with exit code 7 and no result"),
        (by(MissingData("words")), "unsupported", "words"),
        (by(NoSuchKernel("words")), "unsupported", "words"),
        (by(WrongOutput("words")), "wrong", "words"),
        (by(MemoryError("words")), "failed", "build ran out of memory: words"),
        (by(KeyError("words")), "failed", "build: KeyError: 'words'"),
        (by(ValueError()), "failed", "build: ValueError: ValueError"),
        (by(Unsupported("no such pooling [value\n)]\n\n  Inputs:")), "unsupported", "no such pooling [value"),
        (
            by(RuntimeError("\n[enforce fail]\nframe #0\nframe #1")),
            "failed",
            "build: RuntimeError: [enforce fail]",
        ),
        (by(RuntimeError("Traceback:\n  File x\nNo: y")), "failed", "build: RuntimeError: No: y"),
        (by(OSError(errno.ENOENT, "words")), "failed", "build: FileNotFoundError: [Errno 2] words"),
    ],
)
def test_failures(end: ChildEnd, status: str, reason: str) -> None:
    outcome = failure("build", end, 5.0, 2**30)
    assert (outcome.status, outcome.reason, outcome.corrupt) == (status, reason, False)


def test_a_process_that_somebody_interrupted_is_no_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        failure("build", ChildEnd(1, exit=-signal.SIGINT), 5.0, 2**30)


def test_an_error_in_a_part_names_its_file_and_line(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("import json\n\ndef schedule(tiles):\n    return json.loads(tiles[3])\n")
    part = runpy.run_path(str(mine))
    for given, said in [([1], "IndexError: list index out of range"), ("ab{]", "JSONDecodeError: Expecting")]:
        with pytest.raises(Exception) as caught:
            part["schedule"](given)
        reason = str(failure("build", by(caught.value), 5.0, 2**30).reason)
        assert reason.startswith(f"build: {said}") and reason.endswith("(mine.py:4)")


def test_a_library_that_runs_out_of_memory_in_its_own_words_has_run_out_of_memory() -> None:
    with pytest.raises(MemoryError) as caught:
        np.ones(2**50)
    assert "build ran out of memory: Unable to allocate" in str(
        failure("build", by(caught.value), 5, 1).reason
    )


def test_a_device_that_is_lost_may_come_back() -> None:
    outcome = failure("measure", by(Unreachable("pi4: no server")), 5.0, 2**30)
    assert outcome.status == "failed"
    assert outcome.reason == "measure: pi4: no server"
    assert outcome.unreachable
    assert not failure("measure", by(ValueError("words")), 5.0, 2**30).unreachable


def test_a_damaged_artifact_can_be_made_again() -> None:
    outcome = failure("build", by(CorruptArtifact("words")), 5.0, 2**30)
    assert (outcome.status, outcome.reason, outcome.corrupt) == (
        "failed",
        "build: CorruptArtifact: words",
        True,
    )


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_outcome(code: int) -> None:
    with pytest.raises(DiskFull):
        failure("build", by(OSError(code, "words")), 5.0, 2**30)


def test_a_status_of_somebody_elses_exception_is_not_taken_for_a_rows() -> None:
    class HttpError(Exception):
        status = 404

    assert describe_exception(HttpError("words")) == TaskError("HttpError", "words")
