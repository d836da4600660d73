from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.store.replacing import replacing


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
