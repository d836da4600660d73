"""What commands show beside their output."""

from __future__ import annotations

import sys

import pytest

from dlas.face.console import terminal


def test_a_terminal_is_told_what_goes_on_and_a_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.working("counting [all] points"):
        pass
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with terminal.working("counting [all] points"):
        sys.stdout.write("a table")
    out, err = capsys.readouterr()
    assert out == "a table" and "counting [all] points" in err
