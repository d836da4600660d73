from __future__ import annotations

import json
from pathlib import Path

import pytest

from dlas.errors import InputError
from dlas.lowering.tuning.record_files import RecordFile, RecordStore, read_sections, write_lines
from dlas.lowering.tuning.records import Baseline, Header, Records, Round, Selection, Trial

HEADER = Header({"workload": "w", "seed": 0}, {"name": "conv"})
POINTS = [{"decisions": {"part": part}} for part in (1, 2, 4)]


def filled(file: RecordFile) -> Records:
    file.add(Round(POINTS))
    file.add(Baseline([0.5]))
    file.add(Trial(1, 0.1, run_s=[2e-3, 1e-3, 3e-3], trace=[[], []]))
    file.add(Trial(0, 0.2, failed="crash", words="killed by SIGABRT (abort)"))
    file.add(Selection(2, {"samples": 5}, 1, {"1": [2e-3]}, 0.3))
    return file.records


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records")
    with store.open(HEADER) as file:
        written = filled(file)
    (read,) = read_sections(store.path(HEADER.key))
    assert read == written
    assert read.trials[1].median_s == 2e-3
    assert [trial.number for trial in read.valid] == [1]
    with store.open(HEADER) as file:
        assert file.records == written
        file.add(Trial(2, 0.1, failed="hang", words="took longer than 1 s"))
    (read,) = read_sections(store.path(HEADER.key))
    assert sorted(read.trials) == [0, 1, 2]


def test_a_torn_last_line_is_dropped_and_nothing_else(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    with store.open(HEADER) as file:
        filled(file)
    path = store.path(HEADER.key)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    (read,) = read_sections(path)
    assert (sorted(read.trials), read.selections) == ([0, 1], [])
    with store.open(HEADER) as file:
        file.add(Selection(2, {"samples": 5}, 1, {"1": [2e-3]}, 0.3))
    assert path.read_bytes() == whole


def test_an_identity_may_have_any_names() -> None:
    assert len(Header({"format": 7, "content": 1}, {}).key) == len(HEADER.key)


def test_an_export_holds_several_files(tmp_path: Path) -> None:
    store = RecordStore(tmp_path / "records")
    headers = [HEADER, Header({"workload": "other"}, {})]
    for header in headers:
        with store.open(header) as file:
            filled(file)
    there = [section for path in store.paths() for section in read_sections(path)]
    write_lines(tmp_path / "export.jsonl", there)
    assert list(read_sections(tmp_path / "export.jsonl")) == there


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "Expecting property name"),
        ("[]", "not an object with one key"),
        ('{"trail": {}}', "unknown kind 'trail'"),
        ('{"trial": {"number": 0}}', "seconds"),
        ('{"trial": {"number": 0, "seconds": 1, "run_s": [-1]}}', "run_s"),
        ('{"trial": {"number": 0, "seconds": 1, "run_s": [NaN]}}', "NaN is no finite number"),
        ('{"trial": {"number": 1, "seconds": 1}}', "there already"),
        ('{"trial": {"number": 2, "seconds": 1, "run_s": [1]}}', "timed and has no schedule"),
        ('{"round": {"candidates": [{"decisions": {"part": NaN}}]}}', "NaN is no finite number"),
        ('{"round": {"candidates": [{"decisions": {"part": 1e999}}]}}', "1e999 is no finite number"),
        ('{"trial": {"number": 3, "seconds": 1}}', "not proposed"),
        ('{"trial": {"number": 2, "seconds": 1, "failed": "bored"}}', "failed"),
        ('{"choice": {"trials": 2, "method": {}, "number": 0, "finalists": {}, "seconds": 1}}', "not timed"),
        ("[" * 100_000, "not tuning records"),
        ('"\\ud800', "not tuning records"),
    ],
)
def test_damaged_records_are_refused_in_one_message(tmp_path: Path, line: str, complaint: str) -> None:
    store = RecordStore(tmp_path)
    with store.open(HEADER) as file:
        filled(file)
    path = store.path(HEADER.key)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, line, lines[-1]]) + "\n")
    with pytest.raises(InputError, match=complaint) as refused:
        list(read_sections(path))
    assert f"{path}, line {len(lines) + 1}" in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError):
        store.open(HEADER)


def test_a_file_must_begin_with_a_header_and_be_about_what_it_is_called(tmp_path: Path) -> None:
    store = RecordStore(tmp_path)
    other = tmp_path / "other"
    other.write_text(json.dumps({"round": {"candidates": []}}) + "\n")
    with pytest.raises(InputError, match="no header"):
        list(read_sections(other))
    write_lines(store.path(HEADER.key), [Records(Header({"workload": "other"}, {}))])
    with pytest.raises(InputError, match="not the records of"):
        store.open(HEADER)


def test_binary_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "picture"
    path.write_bytes(b"\x89PNG\xff\n")
    with pytest.raises(InputError, match="line 1"):
        list(read_sections(path))
