from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError


def test_the_old_content_is_there_until_the_new_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert partial.parent == tmp_path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(path) as partial:
        partial.write_text("ne")
        raise OSError(28, "full")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_stands_in_its_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), replacing(tmp_path / "folder") as partial:
        partial.write_text("new")
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "nowhere" / "file") as partial:
        partial.write_text("new")
    assert os.listdir(tmp_path) == ["folder"]


def test_a_folder_is_created_with_those_above_it_and_may_exist(tmp_path: Path) -> None:
    for _ in range(2):
        make_folder(tmp_path / "a" / "b", "cache")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match=f"the cache .* cannot be a folder: '{tmp_path}/file' is"):
            make_folder(place, "cache")
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_without_permission_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(InputError, match=r"the results folder .* cannot be written to: no permission"):
        make_folder(tmp_path, "results folder")
    with pytest.raises(InputError, match="cannot create the cache '/proc/nowhere'"):
        make_folder(Path("/proc/nowhere"), "cache")
