"""Which points of a comparison take turns on a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.engine import sweep
from dlas.engine.point_run import Active
from dlas.engine.sweep import Sweep
from dlas.measuring.machine import Machine
from tests.fixtures.engine import rows, run, study_of

NETWORKS = """
compression = ["tests.fixtures.stubs:StubCompression"{more}]
algorithm = [{{ name = "tests.fixtures.stubs:StubAlgorithm", number = [1, 2, 3] }}]
hardware = [{{ name = "tests.fixtures.stubs:StubHardware", place = [{devices}] }}]
"""


@pytest.mark.parametrize(
    ("most", "devices", "heats"),
    [
        (7, '"here"', [6, 3]),  # two networks of three points, then the one that is left
        (6, '"here"', [6, 3]),
        (5, '"here"', [3, 3, 3]),
        (2, '"here"', [2, 1, 2, 1, 2, 1]),  # a network with more points than a heat has
        (7, '"here", "there"', [6, 6, 3, 3]),  # points of two devices alternate
        (20, '"here", "there"', [9, 9]),
    ],
)
def test_a_network_is_measured_in_one_heat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, devices: str, heats: list[int]
) -> None:
    seen: list[list[Active]] = []
    start = Sweep._start_heat

    def watched(running: Sweep) -> None:
        before = running._heat
        start(running)
        if running._heat is not None and running._heat is not before:
            seen.append(list(running._heat.members))

    monkeypatch.setattr(Sweep, "_start_heat", watched)
    monkeypatch.setattr(sweep, "INTERLEAVE", most)
    more = ", ".join(
        f'{{ name = "tests.fixtures.stubs:StubCompression", level = {level} }}' for level in (0.2, 0.3)
    )
    run(study_of(NETWORKS.format(more=f", {more}", devices=devices)), tmp_path)
    assert [len(heat) for heat in seen] == heats
    for heat in seen:
        assert len({active.group for active in heat}) == 1


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
    run(
        study_of('compiler = ["tests.fixtures.stubs:StubCompiler", "tests.fixtures.stubs:StubLibrary"]'),
        tmp_path,
    )
    assert max(started) == together
    assert [row.status for row in rows(tmp_path)] == ["ok", "ok"]
