from __future__ import annotations

import os
from pathlib import Path

import pytest

from dlas.bench.store.journal import FileInUse, Journal


def test_lines_are_appended_and_a_torn_one_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\ntwo\nthr")
    journal = Journal(path)
    journal.append("four\n")
    journal.close()
    assert path.read_text() == "one\ntwo\nfour\n"


def test_there_is_one_writer(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "lines")
    with pytest.raises(FileInUse):
        Journal(tmp_path / "lines")
    journal.close()
    Journal(tmp_path / "lines").close()


def test_a_process_forked_meanwhile_does_not_keep_the_next_writer_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "lines")
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(reading, 1)
        os._exit(0)
    journal.close()
    Journal(tmp_path / "lines").close()
    os.write(writing, b".")
    assert os.waitpid(pid, 0)[1] == 0
