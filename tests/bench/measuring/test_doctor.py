"""Each check finds what is wrong and says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from dlas.bench.measuring import doctor
from dlas.bench.measuring.disturbance import Reading
from dlas.bench.measuring.machine import Machine


def interpreter(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def machine(folder: Path, files: dict[str, str]) -> Machine:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Machine(folder)


CORES = {"proc/self/status": "Cpus_allowed_list:\t0-3", "sys/devices/system/cpu/online": "0-3"}


@pytest.mark.slow
def test_this_machine_is_examined_whole() -> None:
    found = doctor.checks()
    assert len({check.name for check in found}) == len(found)
    assert {check.status for check in found} <= {"ok", "warn", "fail"}
    for check in found:
        assert check.finding
        assert (check.advice == "") == (check.status == "ok"), check
    toolchain = [check for check in found if check.name in ("packages", "torchvision's torch", "TVM")]
    assert [check.status for check in toolchain] == ["ok"] * 3, toolchain


def test_packages_that_are_missing_or_wrong_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [Requirement("numpy >=1000"), Requirement("no-such-thing ==1"), Requirement("pytest")]
    monkeypatch.setattr(doctor, "required", lambda: wanted)
    check = doctor.packages()
    assert check.status == "fail"
    assert "numpy is" in check.finding
    assert "no-such-thing is missing" in check.finding
    assert "pytest" not in check.finding


def test_requirements_are_the_checkouts_else_the_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = {line.name for line in doctor.required()}
    assert {"torch", "apache-tvm-ffi"} <= here
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    lines = ["torch>=2.11", 'pytest>=8; extra == "dev"']
    monkeypatch.setattr("dlas.bench.measuring.doctor.metadata.requires", lambda name: lines)
    assert [line.name for line in doctor.required()] == ["torch"]


def test_torch_and_torchvision_must_be_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.torchvision().status == "ok"
    monkeypatch.setattr(doctor, "version", lambda name: "1.0")
    check = doctor.torchvision()
    assert check.status == "fail"
    assert "constraints.txt" in check.advice
    monkeypatch.setattr(doctor, "version", lambda name: None)
    assert doctor.torchvision().status == "fail"


def test_a_tvm_that_dies_is_found_from_outside(tmp_path: Path) -> None:
    check = doctor.tvm_ffi(interpreter(tmp_path, "kill -SEGV $$"))
    assert check.status == "fail"
    assert "died of signal 11" in check.finding
    assert check.advice == "pip install apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1"


def test_a_tvm_that_does_not_import_is_quoted(tmp_path: Path) -> None:
    check = doctor.tvm_ffi(interpreter(tmp_path, "echo 'ImportError: no libtvm' >&2; exit 1"))
    assert check.status == "fail"
    assert "ImportError: no libtvm" in check.finding


@pytest.mark.parametrize(
    ("more", "status", "part"),
    [
        ({}, "ok", "4 of 4 cores"),
        ({"proc/self/status": "Cpus_allowed_list:\t1"}, "warn", "1 of 4 cores"),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000"}, "warn", "quota of 1.5"),
    ],
)
def test_threads(tmp_path: Path, more: dict[str, str], status: str, part: str) -> None:
    check = doctor.threads(machine(tmp_path, CORES | more))
    assert check.status == status
    assert part in check.finding


@pytest.mark.parametrize(
    ("governor", "boost", "status"),
    [("performance", "0", "ok"), ("performance", "1", "warn"), ("schedutil", "0", "warn")],
)
def test_clocks(tmp_path: Path, governor: str, boost: str, status: str) -> None:
    cpu = "sys/devices/system/cpu"
    files = {f"{cpu}/cpu0/cpufreq/scaling_governor": governor, f"{cpu}/cpufreq/boost": boost}
    check = doctor.clocks(machine(tmp_path, CORES | files))
    assert check.status == status
    assert governor in check.finding


@pytest.mark.parametrize(("allowed", "status"), [(True, "ok"), (False, "warn")])
def test_addresses(monkeypatch: pytest.MonkeyPatch, allowed: bool, status: str) -> None:
    monkeypatch.setattr(doctor, "fixed", lambda: nullcontext(allowed))
    assert doctor.addresses().status == status


def test_a_virtual_machine_shows_no_clocks(tmp_path: Path) -> None:
    cpuinfo = {"proc/cpuinfo": "processor: 0\nvendor_id: AuthenticAMD\nflags: avx hypervisor"}
    check = doctor.clocks(machine(tmp_path, CORES | cpuinfo))
    assert check.status == "warn"
    assert "virtual machine" in check.finding


@pytest.mark.parametrize(("busy", "status"), [(10.1, "ok"), (14.0, "warn"), (None, "warn")])
def test_load(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, busy: float | None, status: str) -> None:
    def readings() -> Iterator[Reading]:
        yield Reading(0, 4, 0, None if busy is None else 10.0, None if busy is None else 0.0)
        yield Reading(2, 4, 0, busy, None if busy is None else 0.0)

    taken = readings()
    monkeypatch.setattr("dlas.bench.measuring.doctor.disturbance.read", lambda machine: next(taken))
    assert doctor.load(Machine(tmp_path), seconds=0).status == status


@pytest.mark.parametrize(("gib", "status"), [(100, "ok"), (2, "warn"), (0.1, "fail")])
def test_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gib: float, status: str) -> None:
    usage = SimpleNamespace(free=int(gib * 2**30))
    monkeypatch.setattr("dlas.bench.measuring.doctor.shutil.disk_usage", lambda path: usage)
    check = doctor.disk("disk", tmp_path / "not" / "there" / "yet")
    assert check.status == status
    assert not (tmp_path / "not").exists()


def test_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dlas.bench.measuring.doctor.os.access", lambda path, mode: False)
    assert doctor.disk("disk", tmp_path).status == "fail"


def test_a_missing_compiler_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlas.bench.measuring.doctor.shutil.which", lambda name: None)
    monkeypatch.setenv("CXX", "my-g++")
    check = doctor.compiler()
    assert (check.status, check.finding) == ("warn", "no my-g++")
    assert "torch_compile" in check.advice


def test_packages_that_are_there_and_cannot_be_imported_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {
        "whole": "",
        "broken": "raise TypeError('other protobuf\\nlong')",
        "killing": "import os; os._exit(7)",
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.py").write_text(content)
        described = tmp_path / f"{name}-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (described / "top_level.txt").write_text(name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert doctor.unimportable(["whole", "broken", "killing"]) == {
        "broken": "TypeError: other protobuf",
        "killing": "the interpreter ended with exit code 7",
    }
    monkeypatch.setattr(doctor, "required", lambda: [Requirement("whole"), Requirement("broken")])
    check = doctor.packages()
    assert (check.status, check.finding) == ("fail", "broken cannot be imported: TypeError: other protobuf")
    monkeypatch.setattr(doctor, "EXTRAS", ("broken",))
    assert "broken cannot be imported" in doctor.extras().finding
