"""Whatever happens to one point is that point's row, and nothing measured is lost or doubled."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dlas.bench.processes.outcome import DiskFull, describe_exception
from dlas.bench.store.cache import Cache
from dlas.errors import InputError
from dlas.sweep.engine.turns import lock_device
from dlas.sweep.rows.results import FILE, Results, Row
from tests.fixtures.engine import in_fork, rows, run, same, study_of
from tests.fixtures.package import ROOT
from tests.fixtures.processes import descendants, running, wait_for
from tests.fixtures.stubs import StubHardware, StubModel

PROCESSES = 2


@pytest.mark.parametrize(
    "kills", [4, pytest.param(10, marks=pytest.mark.ci), pytest.param(200, marks=pytest.mark.slow)]
)
def test_killed_sweeps_resume_to_the_rows_of_an_undisturbed_one(tmp_path: Path, kills: int) -> None:
    # In processes of their own, because forking this one, with torch and tvm loaded, takes far longer.
    call = "from tests.fixtures.kills import kill_and_resume; kill_and_resume({}, {!r}, {})"
    sweeps = [
        subprocess.Popen(
            [sys.executable, "-c", call.format(number, str(tmp_path), kills // PROCESSES)], cwd=ROOT
        )
        for number in range(PROCESSES)
    ]
    assert [process.wait() for process in sweeps] == [0] * PROCESSES


def test_nothing_outlives_a_killed_sweep(tmp_path: Path) -> None:
    mark = f"3600.{os.getpid()}"
    study = study_of(
        f'model = [{{name = "tests.fixtures.stubs:StubModel", seconds = {mark}, trace = "{tmp_path}/t"}}]'
    )
    pid = in_fork(lambda: run(study, tmp_path))
    wait_for(lambda: len(descendants(pid)) >= 2)
    group = descendants(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: not any(running(each) for each in group))


@pytest.mark.parametrize("at", ["compile", "load", "run"])
@pytest.mark.parametrize(
    ("trouble", "status", "reason"),
    [
        ("exception", "failed", "RuntimeError: this stub raises"),
        ("unsupported", "unsupported", "this stub supports nothing"),
        ("segfault", "failed", "segmentation fault"),
        ("abort", "failed", "SIGABRT"),
        ("exit", "failed", "exit code 3"),
    ],
)
def test_each_end_has_its_status_and_reason(
    tmp_path: Path, trouble: str, status: str, reason: str, at: str
) -> None:
    options = f'trouble = ["{trouble}", "none"], at = "{at}"'
    compiler = f'compiler = [{{name = "tests.fixtures.stubs:StubCompiler", {options}}}]'
    run(study_of(compiler), tmp_path)
    bad, good = sorted(rows(tmp_path), key=lambda row: row.status == "ok")
    assert (bad.status, good.status) == (status, "ok")
    assert reason in (bad.reason or "")
    assert bad.step == {"compile": "build", "load": "memory", "run": "check"}[at]
    assert bad.latency_s == []


@pytest.mark.parametrize("trouble", ["hang", "grandchild"])
def test_a_hang_is_a_timeout_and_leaves_no_process(tmp_path: Path, trouble: str) -> None:
    study = study_of(
        f'compiler = [{{name = "tests.fixtures.stubs:StubCompiler", trouble = ["{trouble}", "none"]}}]'
    )
    study = study.with_limits(build=3.0)
    run(study, tmp_path)
    assert sorted(row.status for row in rows(tmp_path)) == ["ok", "timeout"]
    reason = next(row.reason for row in rows(tmp_path) if row.status == "timeout")
    assert reason == "build took longer than 3 s"


@pytest.mark.parametrize(("at", "step"), [("compile", "build"), ("load", "memory")])
def test_memory_over_the_limit_is_a_failure_that_says_so(tmp_path: Path, at: str, step: str) -> None:
    options = f'trouble = ["memory", "none"], at = "{at}"'
    study = study_of(f'compiler = [{{name = "tests.fixtures.stubs:StubCompiler", {options}}}]')
    study = study.with_limits(memory=2**29)
    run(study, tmp_path)
    bad, good = sorted(rows(tmp_path), key=lambda row: row.status)
    assert (bad.status, good.status) == ("failed", "ok")
    assert (bad.step, bad.latency_s) == (step, [])
    assert bad.reason == f"the step {step} used more than the limit of 0.5 GiB of memory"


@pytest.mark.parametrize("trouble", ["wrong", "nan"])
def test_a_wrong_answer_is_never_a_time(tmp_path: Path, trouble: str) -> None:
    run(
        study_of(
            f'compiler = [{{name = "tests.fixtures.stubs:StubCompiler", trouble = "{trouble}", at = "run"}}]'
        ),
        tmp_path,
    )
    (row,) = rows(tmp_path)
    assert (row.status, row.step, row.latency_s) == ("wrong", "check", [])
    assert "differs from the reference" in (row.reason or "")


@pytest.mark.parametrize("trouble", ["exception", "segfault", "hang"])
def test_trouble_while_measuring_spares_the_others_that_take_turns(tmp_path: Path, trouble: str) -> None:
    study = study_of(
        'compiler = ["tests.fixtures.stubs:StubCompiler", "tests.fixtures.stubs:StubLibrary"]\n'
        f'hardware = [{{name = "tests.fixtures.stubs:StubHardware", trouble = ["none", "{trouble}"]}}]'
    )
    study = study.with_limits(measure=3.0)
    run(study, tmp_path)
    assert sorted(row.status for row in rows(tmp_path)) == sorted(
        ["ok", "ok", *(["timeout"] * 2 if trouble == "hang" else ["failed"] * 2)]
    )


def test_a_network_that_fails_fails_once_for_all_its_points(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    study = study_of(
        f'model = [{{name = "tests.fixtures.stubs:StubModel", trouble = "exception", trace = "{trace}"}}]\n'
        'algorithm = [{name = "tests.fixtures.stubs:StubAlgorithm", number = [0, 1, 2, 3, 4, 5]}]'
    )
    run(study.with_limits(turns=1), tmp_path)
    assert [(row.status, row.step) for row in rows(tmp_path)] == [("failed", "network")] * 6
    logs = [path.read_text() for path in (tmp_path / "out" / "logs").iterdir()]
    assert sum("this stub raises" in log for log in logs) == 1


def test_a_board_that_is_not_there_is_unsupported_without_any_work(tmp_path: Path) -> None:
    study = study_of('hardware = [{name = "tests.fixtures.stubs:StubHardware", missing = true}]')
    assert run(study, tmp_path).measured == 0
    (row,) = rows(tmp_path)
    assert (row.status, row.seconds) == ("unsupported", {})
    assert "no such board here" in (row.reason or "")


def test_rows_that_are_there_are_not_measured_again(tmp_path: Path) -> None:
    study = study_of(
        'compiler = [{name = "tests.fixtures.stubs:StubCompiler", trouble = ["none", "exception"]}]'
    )
    run(study, tmp_path)
    first = (tmp_path / "out" / FILE).read_bytes()
    summary = run(study, tmp_path)
    assert (summary.kept.total(), summary.measured, sum(summary.written.values())) == (2, 0, 0)
    assert (tmp_path / "out" / FILE).read_bytes() == first
    summary = run(study, tmp_path, retry=["failed"])
    assert (summary.kept.total(), dict(summary.written)) == (1, {"failed": 1})
    assert len(rows(tmp_path)) == 2


def test_a_torn_last_line_is_dropped_and_its_point_run_again(tmp_path: Path) -> None:
    study = study_of('algorithm = [{name = "tests.fixtures.stubs:StubAlgorithm", number = [0, 1, 2]}]')
    run(study, tmp_path)
    whole = same(rows(tmp_path))
    path = tmp_path / "out" / FILE
    path.write_bytes(path.read_bytes()[:-40])
    assert len(rows(tmp_path)) == 2
    assert run(study, tmp_path).measured == 1
    assert same(rows(tmp_path)) == whole


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with Results(tmp_path / "out"), pytest.raises(InputError, match="another sweep is writing"):
        Results(tmp_path / "out")


@pytest.mark.slow
def test_a_full_disk_stops_the_sweep_and_loses_nothing(tmp_path: Path) -> None:
    if os.getuid() != 0 or subprocess.run(["mount", "--version"], capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    study = study_of(
        'algorithm = [{name = "tests.fixtures.stubs:StubAlgorithm", number = [0, 1, 2, 3, 4, 5, 6, 7]}]\n'
        'compiler = [{name = "tests.fixtures.stubs:StubCompiler", number = [0, 1, 2]}]'
    )
    try:
        (disk / "ballast").write_bytes(b"\0" * 20_000)
        with pytest.raises((DiskFull, OSError), match=r"[Nn]o (space|room)"):
            run(study, disk, keep_builds=True)
        survived = rows(disk) if (disk / "out" / FILE).exists() else []
        assert len(survived) < 24
        (disk / "ballast").unlink()
        shutil.rmtree(disk / "cache")
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        summary = run(study, disk)
        assert summary.kept.total() == len(survived)
        assert {row.status for row in rows(disk)} == {"ok"}
        assert len(rows(disk)) == 24
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_step_that_finds_the_disk_full_is_nobodys_result(tmp_path: Path) -> None:
    study = study_of('compiler = [{name = "tests.fixtures.stubs:StubCompiler", trouble = "disk"}]')
    with pytest.raises(DiskFull):
        run(study, tmp_path)
    assert rows(tmp_path) == []


def test_a_library_that_finds_the_disk_full_says_so_in_words_or_leaves_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = describe_exception(RuntimeError("ld: final link failed: No space left on device"))
    assert words.cause == "disk"
    cache = Cache(tmp_path)
    monkeypatch.setattr(Cache, "is_full", lambda self: True)
    with pytest.raises(OSError, match="No space left") as found, cache.create("build", "key"):
        raise RuntimeError("unexpected pos 576 vs 534")
    assert describe_exception(found.value).cause == "disk"


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "manifest"])
@pytest.mark.parametrize("kind", ["network", "build"])
def test_a_damaged_artifact_is_noticed_and_made_again(tmp_path: Path, kind: str, damage: str) -> None:
    run(study_of("batch = [1]"), tmp_path, keep_builds=True)
    (artifact,) = (tmp_path / "cache" / kind).iterdir()
    victim = artifact / {"network": "network.json", "build": "build.bin"}[kind]
    if damage == "flip":
        content = bytearray(victim.read_bytes())
        content[0] ^= 1
        victim.write_bytes(bytes(content))
    elif damage == "truncate":
        victim.write_bytes(b"")
    elif damage == "remove":
        victim.unlink()
    else:
        (artifact / "manifest.json").write_text("{")
    second = study_of('hardware = [{name = "tests.fixtures.stubs:StubHardware", slices = 3}]')
    run(second, tmp_path, keep_builds=True)
    assert [row.status for row in rows(tmp_path)] == ["ok", "ok"]


@pytest.mark.slow
def test_two_sweeps_share_a_cache_and_train_once(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    model = f'name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0], seconds = 0.3, trace = "{trace}"'
    compilers = '{name = "tests.fixtures.stubs:StubCompiler", number = [0, 1, 2]}'
    axes = f"model = [{{{model}}}]\ncompiler = [{compilers}]"
    study = study_of(axes)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cache").symlink_to(tmp_path / "cache")
    (tmp_path / "cache").mkdir()
    pids = [in_fork(lambda name=name: run(study, tmp_path / name)) for name in ("a", "b")]  # type: ignore[misc]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    assert sorted(trace.read_text().splitlines()) == ["1.0", "2.0"]
    assert same(rows(tmp_path / "a")) == same(rows(tmp_path / "b"))
    assert {row.status for row in rows(tmp_path / "a")} == {"ok"}


@pytest.mark.slow
def test_jobs_run_networks_side_by_side_and_start_none_while_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(kind: str, work: Callable[..., Any], pause: float) -> Callable[..., Any]:
        def run_and_note(*arguments: Any) -> Any:
            start = time.monotonic()
            time.sleep(pause)
            result = work(*arguments)
            with (tmp_path / "noted").open("a") as out:
                out.write(json.dumps([kind, start, time.monotonic()]) + "\n")
            return result

        return run_and_note

    # Children are forked, so what is replaced here is replaced in them.
    monkeypatch.setattr(StubModel, "build", noted("network", StubModel.build, 0.3))
    monkeypatch.setattr(StubHardware, "measure", noted("measure", StubHardware.measure, 0.1))
    factors = [float(number) for number in range(1, 9)]
    run(
        study_of(f'model = [{{name = "tests.fixtures.stubs:StubModel", factor = {factors}}}]'),
        tmp_path,
        jobs=2,
    )
    spans = [json.loads(line) for line in (tmp_path / "noted").read_text().splitlines()]
    networks = [span[1:] for span in spans if span[0] == "network"]
    measured = [span[1:] for span in spans if span[0] == "measure"]
    assert (len(networks), len(measured)) == (8, 8)
    assert any(a[0] < b[0] < a[1] for a in networks for b in networks)
    assert not any(m[0] < start < m[1] for m in measured for start, _ in networks + measured)


def test_the_device_belongs_to_one_sweep_at_a_time(tmp_path: Path) -> None:
    held = lock_device("stub-only")
    assert held is not None
    assert lock_device("stub-only") is None
    held.release()
    again = lock_device("stub-only")
    assert again is not None
    again.release()


@pytest.mark.slow
def test_the_cache_stays_within_its_limit(tmp_path: Path) -> None:
    options = "number = [0, 1, 2, 3, 4, 5, 6, 7], padding_bytes = 100000"
    compiler = f'name = "tests.fixtures.stubs:StubCompiler", {options}'
    study = study_of(f"compiler = [{{{compiler}}}]")
    run(study, tmp_path, keep_builds=True, limit=300_000)
    cache = Cache(tmp_path / "cache", limit=300_000)
    cache.tidy()
    kept = sum(f.stat().st_size for f in (tmp_path / "cache").rglob("*") if f.is_file())
    assert kept <= 310_000
    assert {row.status for row in rows(tmp_path)} == {"ok"}


def test_ctrl_c_ends_cleanly_and_the_next_run_goes_on(tmp_path: Path) -> None:
    study = study_of(
        'model = [{name = "tests.fixtures.stubs:StubModel", factor = [1.0, 2.0, 3.0], seconds = 0.2}]'
    )
    pid = in_fork(lambda: run(study, tmp_path))
    wait_for(lambda: (tmp_path / "out" / FILE).exists() and (tmp_path / "out" / FILE).stat().st_size > 0)
    os.kill(pid, signal.SIGINT)
    os.waitpid(pid, 0)
    before = len(rows(tmp_path))
    assert 1 <= before < 3
    assert run(study, tmp_path).kept.total() == before
    assert len(rows(tmp_path)) == 3


def test_interrupting_a_step_interrupts_the_sweep_and_fails_no_point(tmp_path: Path) -> None:
    compiler = 'name = "tests.fixtures.stubs:StubCompiler"'
    study = study_of(f'compiler = [{{{compiler}}}, {{{compiler}, trouble = "interrupt"}}]')
    with pytest.raises(KeyboardInterrupt):
        run(study, tmp_path)
    assert all(row.status == "ok" for row in rows(tmp_path))


def test_an_unfinished_write_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(study_of("batch = [1]"), tmp_path)
    (row,) = rows(tmp_path)
    with Results(tmp_path / "out") as results:
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(OSError, match="full"):
            results.append(Row(**{**row.__dict__, "id": "another"}))
    assert [each.id for each in rows(tmp_path)] == [row.id]


def test_a_network_that_ignores_its_input_says_so(tmp_path: Path) -> None:
    run(study_of('model = [{name = "tests.fixtures.stubs:StubModel", factor = [0.0, 1.0]}]'), tmp_path)
    notes = {row.model.get("factor", 1.0): row.note for row in rows(tmp_path)}
    assert "hardly depend on the image" in (notes[0.0] or "")
    assert notes[1.0] is None
