"""Folders of one study are joined: later rows count, other keys and machines are kept apart."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.errors import InputError
from dlas.sweep.engine.merging import Merged, merge
from dlas.sweep.rows.missing import missing_of
from dlas.sweep.rows.results import CURVES, read_rows
from dlas.sweep.study.kept import keep
from dlas.sweep.study.shards import Shard
from dlas.sweep.study.study import Study
from tests.fixtures.commands import Command, runner, start
from tests.fixtures.processes import wait_for
from tests.fixtures.rows import again, failing, row, write

OTHER = {"cpu": "another processor"}
AXES = ("dataset", "model", "algorithm", "compiler", "hardware")


def study(**axes: Any) -> Study:
    """Return a study of stub parts."""
    usual = {axis: f"tests.fixtures.stubs:Stub{axis.capitalize()}" for axis in AXES}
    return Study(axes={**usual, **axes}, name="made-up")


def joined(tmp_path: Path, *folders: list[Any]) -> tuple[Merged, list[str]]:
    said: list[str] = []
    places = [write(tmp_path / f"part{number}", rows) for number, rows in enumerate(folders)]
    return merge(places, tmp_path / "all", say=said.append), said


def test_rows_of_several_folders_are_in_one(tmp_path: Path) -> None:
    first, second, third = row(batch=1), row(batch=2), failing(batch=4)
    merged, said = joined(tmp_path, [first], [second, third])
    assert (merged.rows, merged.replaced, merged.apart) == (3, 0, [])
    assert list(read_rows(tmp_path / "all")) == [first, second, third]
    assert said == [f"3 rows of 2 folders: {tmp_path / 'all'}"]
    assert {path.name for path in tmp_path.iterdir()} == {"part0", "part1", "all"}


def test_the_later_of_two_rows_with_the_same_key_and_machine_counts(tmp_path: Path) -> None:
    earlier = row(started="2026-01-01T00:00:00+00:00")
    later = again(earlier, latency_s=[0.5] * 9, started="2026-01-02T00:00:00+00:00")
    merged, said = joined(tmp_path, [later], [earlier])
    assert (merged.rows, merged.replaced) == (1, 1) and merged.apart == []
    assert list(read_rows(tmp_path / "all")) == [later]
    assert said[1] == "1 row gave way to a later one of the same point, key and machine"


@pytest.mark.parametrize("change", ["key", "machine"])
def test_another_key_or_machine_is_kept_apart(tmp_path: Path, change: str) -> None:
    here = row(started="2026-01-02T00:00:00+00:00")
    there = again(here, started="2026-01-01T00:00:00+00:00")
    there = dataclasses.replace(
        there, **({"key": "other"} if change == "key" else {"device": {**here.device, **OTHER}})
    )
    merged, said = joined(tmp_path, [there, row(batch=8)], [here])
    apart = tmp_path / "all" / "apart-1"
    assert merged.apart == [apart] and merged.rows == 2 and merged.replaced == 0
    assert list(read_rows(apart)) == [there] and here in list(read_rows(tmp_path / "all"))
    assert said[-1] == f"1 row of points with another key or from another machine: {apart}"
    assert len(dlas.read([tmp_path / "all", apart])) == 3, "both are read together"


def test_files_beside_rows_and_the_study_come_along(tmp_path: Path) -> None:
    whole = study(batch=[1, 2, 4])
    points = list(whole.points())
    rows = [row(**{**point.content(), "id": point.id}) for point in points[:2]]
    folders = [write(tmp_path / f"part{number}", [each]) for number, each in enumerate(rows)]
    for folder, each in zip(folders, rows, strict=True):
        keep(folder, whole.toml(), 3)
        for name, suffix in (("logs", "log"), (CURVES, "json")):
            (folder / name).mkdir()
            (folder / name / f"{each.id}.{suffix}").write_text(each.id)
            (folder / name / f"of-a-row-that-is-gone.{suffix}").write_text("")
    merge(folders, tmp_path / "all")
    logs = {path.name: path.read_text() for path in (tmp_path / "all" / "logs").iterdir()}
    assert logs == {f"{each.id}.log": each.id for each in rows}
    assert len(list((tmp_path / "all" / CURVES).iterdir())) == 2
    assert [each.id for each in Study.read(tmp_path / "all" / "study.toml").points()] == [
        p.id for p in points
    ]
    with pytest.warns(UserWarning, match="rows of 2 of the 3 points"):
        (missing,) = missing_of(dlas.read(tmp_path / "all"))
    assert (missing["points"], missing["rows"], missing["missing"]) == (3, 2, 1)


def test_a_study_that_differs_is_told(tmp_path: Path) -> None:
    parts = [write(tmp_path / f"part{number}", [row(batch=number + 1)]) for number in range(2)]
    for number, folder in enumerate(parts):
        keep(folder, f'name = "s"\nseed = {number}\n')
    said: list[str] = []
    merge(parts, tmp_path / "all", say=said.append)
    assert f"the study of {parts[1]} differs from that of {parts[0]}, which is kept" in said


def refusals(tmp_path: Path) -> dict[str, tuple[list[Path], Path]]:
    first, second = (write(tmp_path / name, [row(batch=n)]) for n, name in enumerate(("a", "b"), 1))
    strange = write(tmp_path / "c", [row(study="of others")])
    return {
        "give the folders to join, two or more": ([first], tmp_path / "all"),
        "is given twice": ([first, second, tmp_path / "b" / ".." / "a"], tmp_path / "all"),
        "holds rows of made-up, and .* of of others: rows of one study": ([first, strange], tmp_path / "all"),
        "`out=.*` is in .*, whose rows are joined": ([first, second], first),
        "`out=.*all'` is in .*, whose": ([first, second], first / "all"),
        "exists and is not an empty folder": ([first, second], strange),
        "no results.jsonl in": ([first, tmp_path / "nowhere"], tmp_path / "all"),
    }


@pytest.mark.parametrize("at", range(7))
def test_what_cannot_be_joined_is_one_message(tmp_path: Path, at: int) -> None:
    said, (folders, out) = list(refusals(tmp_path).items())[at]
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(InputError, match=said):
        merge(folders, out)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_the_command_prints_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = runner(tmp_path, monkeypatch, capsys)
    write(tmp_path / "a", [row(batch=1)])
    write(tmp_path / "b", [row(batch=2)])
    done = command("merge", "a", "b", "--out", "all")
    assert done.returncode == 0 and done.stdout.endswith("next: dlas table all\n")
    assert command("merge", "a", "b", "--out", "a").returncode == 2


def test_the_rows_of_merged_shards_are_those_of_one_run(tmp_path: Path) -> None:
    whole = study(model={"name": "tests.fixtures.stubs:StubModel", "factor": [2, 3, 5]}, batch=[1, 8])
    options: dict[str, Any] = {"cache": tmp_path / "cache", "in_process": True, "progress": "silent"}
    for number in (1, 2, 3):
        rows = dlas.run(whole, tmp_path / f"shard{number}", shard=f"{number}/3", **options)
        own = [point.id for point in Shard(number, 3).points(whole)]
        assert sorted(rows["id"]) == sorted(own) and len(own) == 2
    once = dlas.run(whole, tmp_path / "whole", **options)
    merge([tmp_path / f"shard{number}" for number in (1, 2, 3)], tmp_path / "all")
    found = dlas.read(tmp_path / "all").set_index("id")
    assert not missing_of(found)
    same = ["status", "model", "batch", "accuracy"]
    assert found[same].sort_index().equals(once.set_index("id")[same].sort_index())
    after = (tmp_path / "all" / "results.jsonl").read_text()
    dlas.run(whole, tmp_path / "all", **options)
    assert (tmp_path / "all" / "results.jsonl").read_text() == after, "nothing is left to run"
    assert len({json.loads(line)["id"] for line in after.splitlines()}) == 6


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT], ids=str)
def test_a_shard_that_is_ended_and_goes_on_is_merged_as_one_run(tmp_path: Path, sent: signal.Signals) -> None:
    model = "tests.fixtures.stubs:StubModel"
    whole = study(model=[{"name": model, "factor": [2, 3]}, {"name": model, "factor": 5, "seconds": 3.0}])
    (tmp_path / "study.toml").write_text(whole.toml())
    results = tmp_path / "shard1" / "results.jsonl"
    process = start(tmp_path, "run", "study.toml", "--shard", "1/2", "--out", "shard1", "--in-process")
    wait_for(lambda: results.is_file() and results.read_text().count("\n") > 0)
    assert process.pid is not None
    os.kill(process.pid, sent)
    process.join()
    ended = results.read_text()
    assert ended.count("\n") == 1, "its shard has two points, and one takes seconds"
    options: dict[str, Any] = {"cache": tmp_path / "cache", "in_process": True, "progress": "silent"}
    for number in (1, 2):
        dlas.run(whole, tmp_path / f"shard{number}", shard=f"{number}/2", **options)
    assert results.read_text().startswith(ended), "what was measured is not measured again"
    dlas.run(whole, tmp_path / "whole", **options)
    merge([tmp_path / "shard1", tmp_path / "shard2"], tmp_path / "all")
    once, merged = ({each.id: each for each in read_rows(tmp_path / name)} for name in ("whole", "all"))
    assert len(once) == 3 and merged.keys() == once.keys()
    for row_id, each in once.items():
        assert (merged[row_id].status, merged[row_id].accuracy) == (each.status, each.accuracy)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["merge", "a", "c", "--out", "all"], "holds rows of made-up, and 'c' of of others"),
        (["merge", "a", "b", "--out", "a"], "--out 'a' is in 'a', whose rows are joined"),
        (["merge", "a", "a", "--out", "all"], "'a' is given twice"),
        (["compare", "a", "--against", "c"], "no point is in both 'a' (rows of made-up) and 'c' (rows of of"),
        (["compare", "a", "--against", "b"], "no point is in both 'a'"),
        (["compare", "a", "--against", "a"], "no point of 'a' has an earlier row with another key"),
        (
            ["run", "study.toml", "--out", "x", "--shard", "5/4"],
            "--shard '5/4': expected",
        ),
        (["run", "study.toml", "--out", "x", "--shard", "0/4"], "--shard '0/4': expected"),
        (["run", "study.toml", "--out", "x", "--shard", "a/b"], "--shard 'a/b': expected"),
        (["run", "study.toml", "--out", "x", "--shard", "2/2"], "--shard '2/2' has no points"),
    ],
)
def test_what_shards_and_runs_cannot_be_is_one_message_and_exit_code_2(
    tmp_path: Path, dlas_here: Command, words: list[str], said: str
) -> None:
    (tmp_path / "study.toml").write_text(study().toml())
    write(tmp_path / "a", [row(batch=1)])
    write(tmp_path / "b", [row(batch=2)])
    write(tmp_path / "c", [row(batch=4, study="of others")])
    refused = dlas_here(*words)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and said in refused.stderr
    assert not (tmp_path / "x").exists() and not (tmp_path / "all").exists()
