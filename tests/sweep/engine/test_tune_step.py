"""Tuning as a step of a sweep: alone on the device, resumed, shared between studies."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from dlas.lowering.tuning.record_files import read_sections
from dlas.lowering.tuning.records import Records
from dlas.sweep.study.study import Study
from tests.fixtures.engine import in_fork, rows, run, study_of
from tests.fixtures.processes import descendants, running, wait_for

HARDWARE = 'hardware = [{name = "local_cpu", threads = 1}]\n'


def tiled(trials: str = "8", more: str = "", model: str = "") -> Study:
    """Return a study of the compiler that tunes one tiny convolution."""
    compiler = f'{{name = "tests.fixtures.tiled:TiledCompiler", trials = {trials}{more}}}'
    axes = f"compiler = [{compiler}]\n{HARDWARE}{model}"
    return study_of(axes).with_measure(repeats=2, seconds=0.2, sample_seconds=1e-5)


def on_file(folder: Path) -> Records:
    (path,) = (folder / "cache" / "records").glob("*.jsonl")
    (records,) = read_sections(path)
    return records


@pytest.mark.slow
def test_a_tuned_row_says_what_was_tried_and_its_curve_lies_beside(tmp_path: Path) -> None:
    run(tiled("[3, 8]"), tmp_path)
    few, many = sorted(rows(tmp_path), key=lambda row: row.compiler.get("trials", 8))
    for row, trials in ((few, 3), (many, 8)):
        assert row.status == "ok", row.reason
        assert row.tuning is not None and row.tuning["trials"] == trials and row.tuning["seconds"] > 0
        assert "curves" not in row.tuning
        assert row.layers[0]["trials"] == trials
        assert row.seconds["tune"] > 0
        assert set(row.artifacts) == {"network", "tuning", "build"}
        (curve,) = json.loads((tmp_path / "out" / "tuning" / f"{row.id}.json").read_text())
        assert curve["layers"] == ["conv"] and curve["best"][-1][0] <= trials
    assert len(on_file(tmp_path).trials) == 8
    assert not list((tmp_path / "cache" / "work").iterdir())


@pytest.mark.slow
def test_two_studies_share_what_was_tried_and_the_cache_limit_spares_it(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    more = f', trace = "{trace}"'
    run(tiled(more=more), tmp_path, limit=1)
    applied = Counter(trace.read_text().split())
    for name in ("out", "cache/tuning"):
        (tmp_path / name).rename(tmp_path / f"{Path(name).name}.old")
    run(
        tiled(more=more, model='model = [{name = "tests.fixtures.stubs:StubModel", factor = 2.0}]'),
        tmp_path,
        limit=1,
    )
    (row,) = rows(tmp_path)
    assert row.status == "ok" and row.tuning is not None and row.tuning["trials"] == 8
    assert Counter(trace.read_text().split()) == applied


@pytest.mark.slow
def test_no_valid_candidate_is_a_failed_row_in_the_words_of_most(tmp_path: Path) -> None:
    run(tiled(more=", broken = [true, false]"), tmp_path)
    good, bad = sorted(rows(tmp_path), key=lambda row: row.status != "ok")
    assert (good.status, bad.status, bad.step, bad.latency_s) == ("ok", "failed", "tune", [])
    assert "8 x build: ValueError: no point can be scheduled" in (bad.reason or "")


@pytest.mark.slow
def test_a_search_over_its_time_is_a_timeout_and_what_it_tried_is_kept(tmp_path: Path) -> None:
    study = tiled(more=', trouble_at = "hang"')
    study = study.with_limits(tune=12.0)
    run(study, tmp_path)
    (row,) = rows(tmp_path)
    assert (row.status, row.reason) == ("timeout", "tune took longer than 12 s")
    assert on_file(tmp_path).rounds == [4]


def _trials(folder: Path) -> int:
    paths = list((folder / "cache" / "records").glob("*.jsonl"))
    return paths[0].read_text().count('{"trial"') if paths else 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["sweep", "child"])
def test_killed_in_the_middle_it_goes_on_with_nothing_lost_or_tried_twice(
    tmp_path: Path, victim: str
) -> None:
    trace = tmp_path / "trace"
    study = tiled(more=f', trouble_at = "wait", trace = "{trace}"')
    pid = in_fork(lambda: run(study, tmp_path))
    wait_for(lambda: _trials(tmp_path) >= 2)
    group = descendants(pid)
    if victim == "child":
        os.kill(_tune_child(group), signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_for(lambda: not any(running(each) for each in group))
    before = dict(on_file(tmp_path).trials)
    assert 2 <= len(before) < 8
    Path(f"{trace}.go").touch()
    if victim == "child":
        (row,) = rows(tmp_path)
        assert (row.status, row.step) == ("failed", "tune")
        assert "SIGKILL" in (row.reason or "")
    run(study, tmp_path, retry=["failed"])
    (row,) = rows(tmp_path)
    assert row.status == "ok", row.reason
    after = on_file(tmp_path)
    assert {number: after.trials[number] for number in before} == before
    assert sorted(after.trials) == list(range(8))
    lines = [
        line for path in (tmp_path / "cache" / "records").iterdir() for line in path.read_text().splitlines()
    ]
    assert sum(line.startswith('{"trial"') for line in lines) == 8


def _tune_child(pids: list[int]) -> int:
    """Return the process that has workers: of those with children, the one that was forked last."""
    return max(pid for pid in pids if _children(pid))


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


@pytest.mark.slow
def test_nothing_starts_while_a_search_has_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.fixtures.stubs import StubModel
    from tests.fixtures.tiled import TiledCompiler

    def noted(kind: str, work: object) -> object:
        def run_and_note(*arguments: object) -> object:
            start = time.monotonic()
            result = work(*arguments)  # type: ignore[operator]
            with (tmp_path / "noted").open("a") as out:
                out.write(json.dumps([kind, start, time.monotonic()]) + "\n")
            return result

        return run_and_note

    # Children are forked, so what is replaced here is replaced in them.
    monkeypatch.setattr(StubModel, "build", noted("network", StubModel.build))
    monkeypatch.setattr(TiledCompiler, "tune", noted("tune", TiledCompiler.tune))
    model = (
        f'model = [{{name = "tests.fixtures.stubs:StubModel", factor = {[float(n) for n in range(1, 5)]}}}]'
    )
    run(tiled("2", model=model), tmp_path, jobs=2)
    spans = [json.loads(line) for line in (tmp_path / "noted").read_text().splitlines()]
    tunes = [span[1:] for span in spans if span[0] == "tune"]
    assert len(tunes) == 4
    assert not any(t[0] < start < t[1] for t in tunes for _, start, _ in spans)
    assert {row.status for row in rows(tmp_path)} == {"ok"}
