"""Clocks as options: of this machine and of a board, on fake trees of sysfs."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from dlas.axes.hardware import board
from dlas.axes.hardware.clock_options import NOT_SETTABLE
from dlas.axes.hardware.drivers.local import Local
from dlas.axes.hardware.drivers.rpc import Rpc
from dlas.bench.clocks.served import NOT_ALLOWED
from dlas.errors import InputError
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from tests.fixtures.boards import board_profile
from tests.fixtures.commands import Command
from tests.fixtures.processes import wait_for
from tests.fixtures.remote import served
from tests.fixtures.sysfs import jetson, lack, settings

STUDY = """
name = "clocks"
[axes]
dataset = [{ name = "random", size = 8, images = 4, classes = 4 }]
model = ["tests.fixtures.tiny:TinyModel"]
compiler = ["onnxruntime"]
hardware = [%s]
[measure]
repeats = 4
seconds = 0.2
slices = 2
layer_repeats = 2
"""
STEP, FAST = 1190400e3, 2265600e3


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    return jetson(tmp_path / "tree")


def profile(folder: Path, **clocks: object) -> Path:
    path = folder / "mine.toml"
    content = {"title": "mine", "driver": "local", **({"clocks": clocks} if clocks else {})}
    path.write_text(tomli_w.dumps(content))
    return path


def device(folder: Path, options: dict[str, Any], **clocks: object) -> Local:
    made = parts.make("hardware", str(profile(folder, **clocks)), {"threads": 1, **options})
    assert isinstance(made, Local)
    return made


def test_clocks_are_set_and_restored_and_what_they_were_is_told(tmp_path: Path, tree: Path) -> None:
    found = settings(tree)
    made = device(tmp_path, {"cpu_hz": STEP}, settable=True, root=str(tree))
    made.verify()
    assert made.unsupported() is None
    told: list[str] = []
    with made.hold_clocks(None, told.append) as read:
        assert settings(tree) != found
        clock = read()["cpu"]
        assert (clock["requested_hz"], clock["applied_hz"]) == (STEP, STEP)
    assert settings(tree) == found and not told


def test_nothing_is_set_that_nobody_asked_for(tmp_path: Path, tree: Path) -> None:
    found = settings(tree)
    with device(tmp_path, {}, settable=True, root=str(tree)).hold_clocks(None, print) as read:
        assert settings(tree) == found and not read()


def test_a_profile_has_to_let_clocks_be_set(tmp_path: Path, tree: Path) -> None:
    for clocks in ({}, {"root": str(tree)}):
        assert device(tmp_path, {"cpu_hz": STEP}, **clocks).unsupported() == NOT_SETTABLE


def test_a_clock_that_is_no_step_is_refused_with_the_nearest(tmp_path: Path, tree: Path) -> None:
    made = device(tmp_path, {"cpu_hz": 1.2e9}, settable=True, root=str(tree))
    with pytest.raises(InputError, match="1190400000 and 1267200000"):
        made.verify()


def test_a_clock_that_is_not_there_is_unsupported(tmp_path: Path, tree: Path) -> None:
    made = device(tmp_path, {"memory_hz": 204e6}, settable=True, root=str(lack(tree, "memory")))
    made.verify()
    assert "memory_hz" in str(made.unsupported())


def rows_of(folder: Path, dlas_here: Command, hardware: str) -> list[Row]:
    (folder / "study.toml").write_text(STUDY % hardware)
    ran = dlas_here("run", "study.toml", "--out", "out")
    assert ran.returncode == 0, ran.stderr
    return sorted(read_rows(folder / "out"), key=lambda row: row.hardware.get("cpu_hz", 0.0))


@pytest.mark.slow
def test_a_row_has_what_was_asked_for_applied_and_observed(
    tmp_path: Path, tree: Path, dlas_here: Command
) -> None:
    found = settings(tree)
    profile(tmp_path, settable=True, root=str(tree))
    clocks = f"cpu_hz = [{STEP}, {FAST}]"
    slow, fast = rows_of(tmp_path, dlas_here, f'{{ name = "mine.toml", threads = 1, {clocks} }}')
    assert settings(tree) == found
    for row, hz in ((slow, STEP), (fast, FAST)):
        assert row.status == "ok", row.reason
        assert row.clocks["cpu"]["requested_hz"] == row.clocks["cpu"]["applied_hz"] == hz
        # No processor is behind the tree: its clock stays at the highest.
        assert row.clocks["cpu"]["observed_hz"] == row.device["cpu_hz"] == FAST
    shown = dlas_here("show", "out", slow.id)
    assert "1.19 GHz asked for" in shown.stdout.replace("\n", " "), shown.stdout
    assert f"instead of {STEP:.10g}" in str(slow.clocks_note) and fast.clocks_note is None


@pytest.mark.slow
def test_a_board_sets_its_clocks_where_its_server_lets_it(
    tmp_path: Path, tree: Path, dlas_here: Command
) -> None:
    found = settings(tree)
    allowed = ("--allow-clocks", "--sysfs-root", str(tree))
    for options, expected in ((allowed, "ok"), ((), "unsupported")):
        with served(tmp_path, options=options) as server:
            path = board_profile(tmp_path, server, f"board_{expected}")
            path.write_text(path.read_text() + "\n[clocks]\nsettable = true\n")
            text = (STUDY % f'{{ name = "{path.name}", cpu_hz = {STEP} }}').replace(
                'compiler = ["onnxruntime"]', 'algorithm = ["direct"]\ncompiler = ["untuned"]'
            )
            (tmp_path / "study.toml").write_text(text)
            ran = dlas_here("run", "study.toml", "--out", f"out-{expected}")
            assert ran.returncode == 0, ran.stderr
        (row,) = read_rows(tmp_path / f"out-{expected}")
        assert row.status == expected, row.reason
        assert settings(tree) == found
        if expected == "ok":
            assert row.clocks["cpu"]["applied_hz"] == STEP
        else:
            assert row.reason and NOT_ALLOWED in row.reason


@pytest.mark.slow
def test_a_session_that_is_lost_restores(tmp_path: Path, tree: Path) -> None:
    found = settings(tree)
    with served(tmp_path, options=("--allow-clocks", "--sysfs-root", str(tree))) as server:
        path = board_profile(tmp_path, server, "board")
        path.write_text(path.read_text() + "\n[clocks]\nsettable = true\n")
        made = parts.make("hardware", str(path), {"cpu_hz": STEP})
        assert isinstance(made, Rpc)
        with board.hold_clocks(made.reach(), made.requested, False, print):
            assert settings(tree) != found
            os.kill(min(server.sessions()), signal.SIGKILL)
            wait_for(lambda: settings(tree) == found)
