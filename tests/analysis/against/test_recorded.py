"""Kept rows of one study on two machines."""

from __future__ import annotations

import dlas
from dlas.analysis.against.changes import OTHER_MACHINE, changes_between
from dlas.analysis.against.history import history_in
from dlas.face.tables.history import grid
from dlas.face.tables.view import View
from tests.fixtures.package import ROOT

KEPT = ROOT / "experiments" / "kernels"
HERE, THERE = (str(KEPT / name) for name in ("networks", "another-machine"))


def test_of_two_machines_nothing_is_called_slower_and_the_machine_is_named() -> None:
    found = changes_between(THERE, HERE)
    timed = [each for each in found.points if each.pair.timed]
    assert len(timed) > 50 and found.noise is None
    assert {each.outcome for each in timed} == {OTHER_MACHINE} and not found.slower_by(0.0)
    assert all(each.causes[0].startswith("machine: family (25 there, 26 here)") for each in timed)
    told = str(dlas.compare(THERE, against=HERE))
    assert " slower" not in told and " faster" not in told and f"{len(timed)} other machine" in told


def test_a_history_does_not_join_what_two_machines_measured() -> None:
    found = history_in([HERE, str(KEPT / "networks-again"), THERE], ["batch=1"])
    assert not [event for each in found.points for event in each.events]
    versions = found.frame().groupby("machine")["version"].unique().map(sorted).to_dict()
    # That of the other machine was measured first.
    assert versions == {"AMD EPYC 25/1/1, AVX2, 2 cores": [2, 3], "AMD EPYC 26/2/1, AVX-512, 2 cores": [1]}
    assert "AMD EPYC 26/2/1, AVX-512, 2 cores: one version alone" in str(View(found.frame(), grid(found)))
