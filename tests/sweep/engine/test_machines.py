"""Rows of another machine in the folder that a sweep is to write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.sweep.engine.checks import check_machine, devices
from dlas.sweep.rows.machines import with_core_caches
from dlas.sweep.study.study import Study
from tests.fixtures.commands import Command
from tests.fixtures.engine import run, study_of
from tests.fixtures.rows import failing, row, write
from tests.fixtures.stubs import StubHardware

STUB = "tests.fixtures.stubs:StubHardware"
HERE = study_of(f'hardware = [{{ name = "{STUB}", place = ["here", "beside"] }}]')
HARDWARE = HERE.values("hardware")
LOCAL = 'name = "s"\n[axes]\nhardware = ["local_cpu"]\n'
OTHER = {"cpu": "Imaginary 9000", "physical_cores": 4096, "extensions": ["avx9"]}


def test_rows_of_this_machine_are_gone_on_with(tmp_path: Path) -> None:
    assert check_machine(devices(HARDWARE), tmp_path / "nowhere") == []
    run(HERE, tmp_path)
    assert check_machine(devices(HARDWARE), tmp_path / "out") == []
    run(HERE, tmp_path)
    assert check_machine(devices(Study.parse(LOCAL).values("hardware")), tmp_path / "out") == []


def test_rows_without_caches_for_each_core_are_of_this_machine(tmp_path: Path) -> None:
    """Earlier versions wrote the sums alone, and so does what describes a device."""
    (choice,) = hardware = Study.parse(LOCAL).values("hardware")
    described = choice.make("hardware").describe()
    assert "l1d_core_bytes" not in described
    for name, device in (("before", described), ("now", with_core_caches(described))):
        assert check_machine(devices(hardware), write(tmp_path / name, [row(device=device)])) == []


def test_rows_of_another_machine_are_refused_unless_anyway(tmp_path: Path) -> None:
    there = {"name": STUB, "place": "there"}
    write(tmp_path, [row(hardware=there, device={"cpu": "there"}), failing(hardware=there, batch=2)])
    with pytest.raises(InputError) as refused:
        check_machine(devices(HARDWARE), tmp_path)
    for told in (str(tmp_path), "1 row of", "there, otherwise unknown", "here", "`out=`", "`anyway=True`"):
        assert told in str(refused.value)
    (told_anyway,) = check_machine(devices(HARDWARE), tmp_path, anyway=True)
    assert "another machine" in told_anyway and "cpu (there there, here here)" in told_anyway


def test_a_machine_of_which_nothing_contradicts_is_told_of_as_unknown(tmp_path: Path) -> None:
    write(tmp_path, [row(hardware=STUB, device={"cpu": "here", "family": "6"})])
    (told,) = check_machine(devices(HARDWARE), tmp_path)
    assert "whether it is this machine" in told and "is unknown" in told


def test_the_command_quotes_both_machines_and_exits_2(tmp_path: Path, dlas_here: Command) -> None:
    (tmp_path / "study.toml").write_text(LOCAL)
    folder = write(tmp_path / "out", [row(device=OTHER)])
    before = (folder / "results.jsonl").read_bytes()
    refused = dlas_here("run", "study.toml", "--out", "out")
    assert refused.returncode == 2 and (folder / "results.jsonl").read_bytes() == before
    assert "Imaginary 9000, AVX, 4096 cores" in refused.stderr and "--anyway" in refused.stderr
    assert [path.name for path in folder.iterdir()] == ["results.jsonl"]


def test_rows_of_another_of_several_machines_alike_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = {"cpu": "board", "instance": "second"}
    monkeypatch.setattr(StubHardware, "describe", lambda self: described)
    for instance, differs in (("first", True), ("second", False)):
        folder = write(tmp_path / instance, [row(hardware=STUB, device={**described, "instance": instance})])
        if differs:
            with pytest.raises(InputError, match=r"They differ in instance \(first there, second here\)"):
                check_machine(devices(HARDWARE), folder)
        else:
            assert check_machine(devices(HARDWARE), folder) == []
    older = write(tmp_path / "older", [row(hardware=STUB, device={"cpu": "board"})])
    (told,) = check_machine(devices(HARDWARE), older)
    assert "whether it is this machine" in told
