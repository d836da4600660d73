"""Which points of a comparison take turns on a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.active import Active
from dlas.machine import Machine
from dlas.sweep import Sweep
from tests.engine import rows, run, study_of


@pytest.mark.parametrize(("free", "together"), [(0.9, 2), (0.1, 1)])
def test_points_wait_for_others_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, together: int
) -> None:
    started: list[int] = []
    start = Sweep._start_alone

    def counted(sweep: Sweep, active: Active) -> None:
        start(sweep, active)
        assert sweep._heat is not None
        started.append(sum(member.job is not None for member in sweep._heat.members))

    monkeypatch.setattr(Sweep, "_start_alone", counted)
    monkeypatch.setattr(Machine, "free_memory", lambda machine: free)
    run(study_of('compiler = ["tests.stubs:StubCompiler", "tests.stubs:StubLibrary"]'), tmp_path)
    assert max(started) == together
    assert [row.status for row in rows(tmp_path)] == ["ok", "ok"]
