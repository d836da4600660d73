"""Points of a folder's study that have no row are counted, by a note in the study that the folder keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlas
from dlas.sweep.rows.missing import FILE, MISSING, in_words, missing_points
from dlas.sweep.study.kept import keep
from tests.fixtures.rows import row, write

TEXT = 'name = "s"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, [row(), row(batch=8)])


def test_points_without_a_row_are_those_that_were_noted_less_the_studys_own_rows(folder: Path) -> None:
    assert missing_points(folder, {"a", "b"}) is None, "no study"
    keep(folder, TEXT, 5, others=1)
    found = missing_points(folder, {"a", "b"})
    assert found and (found["study"], found["points"], found["rows"], found["missing"]) == ("s", 5, 1, 4)
    assert (
        in_words(found)
        == f"{folder} has rows of 1 of the 5 points of its study; 4 missing, to go on: dlas run {folder}"
    )
    keep(folder, TEXT)
    assert missing_points(folder, {"a", "b"}) == found, "what was noted stays"
    keep(folder, TEXT, 2)
    assert missing_points(folder, {"a", "b"}) is None


def test_a_study_whose_rows_are_chosen_points_misses_none(folder: Path) -> None:
    keep(folder, TEXT)
    assert missing_points(folder, {"a"}) is None


@pytest.mark.parametrize("edit", ["none", "edited", "older", "broken"])
def test_a_note_is_not_believed_of_another_text(folder: Path, edit: str) -> None:
    keep(folder, TEXT, 2)
    path = folder / FILE
    written = path.read_text()
    first, _, *rest = written.splitlines(keepends=True)
    edited = {"edited": written + "seed = 1\n", "older": first + "".join(rest), "broken": "\0" * 2_000_000}
    path.write_text(edited.get(edit, written))
    found = missing_points(folder, {"a", "b"})
    if edit == "none":
        assert found is None
    else:
        assert found and found["points"] is None and found["missing"] is None
        assert in_words(found).endswith(
            f"does not tell how many points its study has: dlas status {folder} counts them"
        )


def test_a_frame_knows_what_is_missing_also_after_filters(folder: Path) -> None:
    keep(folder, TEXT, 5)
    with pytest.warns(UserWarning, match="rows of 2 of the 5 points"):
        frame = dlas.read(folder)
    (found,) = frame[frame["batch"] == 8].reset_index(drop=True).attrs[MISSING]
    assert (found["rows"], found["missing"]) == (2, 3)
    with pytest.warns(UserWarning, match="3 missing"):
        assert dlas.read(folder, layers=True).attrs[MISSING] == [found]
    assert "2 of the 5 points of its study; 3 missing" in str(dlas.table(frame, where="batch=8"))
