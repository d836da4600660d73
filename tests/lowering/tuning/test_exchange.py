"""Records from store to store, and the commands for tuning."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dlas.errors import InputError
from dlas.face.cli.app import app
from dlas.lowering.tuning.exchange import MergeReport, all_records, export, merge
from dlas.lowering.tuning.record_files import RecordStore
from dlas.lowering.tuning.records import Baseline, Header, Round, Selection, Trial
from tests.fixtures.commands import dlas

HEADER = Header({"workload": "w", "machine": "here"}, {"name": "conv"})


def points(*numbers: int) -> Round:
    return Round([{"decisions": {"n": number}} for number in numbers])


def fill(store: RecordStore, rounds: list[Round], trials: dict[int, float], header: Header = HEADER) -> None:
    with store.open(header) as file:
        for each in rounds:
            file.add(each)
        file.add(Baseline([1.0]))
        for number, seconds in trials.items():
            file.add(Trial(number, 0.1, run_s=[seconds], trace=[[], []]))


def trials(store: RecordStore) -> dict[int, float]:
    (records,) = all_records(store)
    return {trial.number: trial.median_s for trial in records.valid}


def moved(tmp_path: Path, store: RecordStore, into: RecordStore) -> MergeReport:
    export(store, tmp_path / "export.jsonl")
    return merge(into, [tmp_path / "export.jsonl"])


@pytest.fixture
def stores(tmp_path: Path) -> tuple[RecordStore, RecordStore]:
    return RecordStore(tmp_path / "a"), RecordStore(tmp_path / "b")


def test_a_merge_into_nothing_is_a_copy(tmp_path: Path, stores: tuple[RecordStore, RecordStore]) -> None:
    ours, theirs = stores
    fill(theirs, [points(0, 1), points(2)], {0: 3.0, 1: 1.0, 2: 2.0})
    fill(theirs, [points(0)], {0: 1.0}, Header({"workload": "w", "machine": "there"}, {}))
    with theirs.open(HEADER) as file:
        file.add(Selection(2, {}, 1, {"1": [1.0]}, 0.1))
    merged = moved(tmp_path, theirs, ours)
    assert (merged.workloads, merged.new, merged.trials, merged.diverged) == (2, 2, 4, 0)
    assert all_records(ours) == all_records(theirs)


def test_merging_again_changes_nothing(tmp_path: Path, stores: tuple[RecordStore, RecordStore]) -> None:
    ours, theirs = stores
    fill(theirs, [points(0, 1)], {0: 3.0, 1: 1.0})
    moved(tmp_path, theirs, ours)
    before = [path.read_bytes() for path in ours.paths()]
    merged = moved(tmp_path, theirs, ours)
    assert (merged.new, merged.trials) == (0, 0)
    assert [path.read_bytes() for path in ours.paths()] == before


def test_a_longer_search_extends_a_shorter_one(
    tmp_path: Path, stores: tuple[RecordStore, RecordStore]
) -> None:
    ours, theirs = stores
    fill(ours, [points(0, 1)], {0: 3.0})
    fill(theirs, [points(0, 1), points(2, 3)], {0: 4.0, 1: 1.0, 2: 2.0})
    assert moved(tmp_path, theirs, ours).trials == 2
    assert trials(ours) == {0: 3.0, 1: 1.0, 2: 2.0}  # what was there stays


def test_searches_that_part_are_merged_up_to_there(
    tmp_path: Path, stores: tuple[RecordStore, RecordStore]
) -> None:
    ours, theirs = stores
    fill(ours, [points(0, 1), points(2, 3)], {0: 3.0, 2: 3.0})
    fill(theirs, [points(0, 1), points(3, 2)], {0: 4.0, 1: 1.0, 2: 2.0})
    with theirs.open(HEADER) as file:
        file.add(Selection(2, {}, 1, {"1": [1.0]}, 0.1))
    merged = moved(tmp_path, theirs, ours)
    assert (merged.trials, merged.diverged) == (1, 1)
    assert trials(ours) == {0: 3.0, 1: 1.0, 2: 3.0}
    assert all_records(ours)[0].selections == []  # it was made among other times


@pytest.mark.parametrize("content", ["", "nonsense\n", '{"trial": {"number": 0, "seconds": 1}}\n'])
def test_one_bad_file_and_nothing_is_merged(
    tmp_path: Path, stores: tuple[RecordStore, RecordStore], content: str
) -> None:
    ours, theirs = stores
    fill(theirs, [points(0)], {0: 1.0})
    export(theirs, tmp_path / "good.jsonl")
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(InputError, match=r"bad\.jsonl"):
        merge(ours, [tmp_path / "good.jsonl", tmp_path / "bad.jsonl"])
    assert ours.paths() == []
    with pytest.raises(InputError, match="nowhere"):
        merge(ours, [tmp_path / "nowhere"])


def said(*words: str) -> str:
    """Return what a command about records says."""
    done = CliRunner().invoke(app, ["records", *words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_tune_list_export_merge_and_a_study_that_finds_it_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = '{name = "tests.fixtures.tiled:OneConvolution", filters = 4}'
    words = [
        "--dataset",
        "tests.fixtures.stubs:StubDataset",
        "--algorithm",
        "tests.fixtures.tiled:Tiled",
        "--trials",
        "3",
    ]
    one = '{name = "local_cpu", threads = 1}'
    tuned = dlas(tmp_path, "tune", "tests.fixtures.tiled:OneConvolution", part, *words, "--hardware", one)
    assert tuned.returncode == 0, tuned.stderr + tuned.stdout
    assert "tune: 2 points" in tuned.stdout
    assert tuned.stdout.count("3 trials, 3 of them valid") == 2
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DLAS_CACHE", str(tmp_path / "cache"))
    listed = said("list")
    assert "1x2x2 > 8, 3x3" in listed
    assert "2 workloads, 6 trials" in listed
    assert "2 workloads written" in said("export", "--to", "all.jsonl")
    merged = said("merge", "all.jsonl", "--cache", "elsewhere")
    assert "2 workloads, 2 of them new; 6 trials added" in merged
    assert "2 workloads, 6 trials" in said("list", "--cache", "elsewhere")
    before = {path: path.read_bytes() for path in (tmp_path / "cache" / "records").iterdir()}
    (tmp_path / "study.toml").write_text(f"""
name = "s"
[axes]
dataset = ["tests.fixtures.stubs:StubDataset"]
model = ["tests.fixtures.tiled:OneConvolution"]
algorithm = ["tests.fixtures.tiled:Tiled"]
compiler = [{{ name = "metaschedule", trials = 3 }}]
hardware = [{one}]
[measure]
repeats = 3
seconds = 1
""")
    ran = dlas(tmp_path, "run", "study.toml", "--out", "out")
    assert "1 ok" in ran.stdout, ran.stdout + ran.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "cache" / "records").iterdir()} == before


def test_what_cannot_be_tuned_ends_in_exit_code_1(tmp_path: Path) -> None:
    words = [
        "--dataset",
        "tests.fixtures.stubs:StubDataset",
        "--hardware",
        '{name = "local_cpu", threads = 1}',
    ]
    broken = dlas(
        tmp_path,
        "tune",
        "tests.fixtures.tiled:OneConvolution",
        *words,
        "--algorithm",
        "tests.fixtures.tiled:Broken",
    )
    assert broken.returncode == 1
    assert "8 x build: ValueError: no point can be scheduled" in broken.stdout
    assert "1 of 1 points were not tuned; logs are in" in broken.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["tune", "cifar_resnet19"], "did you mean 'cifar_resnet18'"),
        (["tune", "{name"], "not a TOML table"),
        (["tune", "cifar_resnet18", "--trials", "0"], "trials = 0"),
        (["tune", "cifar_resnet18", "--space", "moon"], "space = 'moon'"),
        (["records", "merge", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_wrong_words_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str
) -> None:
    monkeypatch.setenv("DLAS_CACHE", str(tmp_path / "cache"))
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, InputError)
    assert complaint in str(refused.exception)
    assert not (tmp_path / "cache").exists()
