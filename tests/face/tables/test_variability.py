"""``dlas variability``: what it prints, what it returns, and what it refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import dlas
from dlas.errors import InputError
from tests.fixtures.board_rows import board_folders, board_rows
from tests.fixtures.commands import Command
from tests.fixtures.rows import CPU, write

FACTORS = {"b1": 1.0, "b2": 1.0, "b3": 1.0, "b4": 1.05, "b5": 1.0}


def test_the_slow_board_is_named_with_its_difference(tmp_path: Path, dlas_here: Command) -> None:
    board_folders(tmp_path, FACTORS)
    said = dlas_here("variability", *FACTORS).stdout
    assert "latency of 5 boards on 30 points, by network" in said
    assert "told apart by the instance of a device" in said
    assert "stands out: b4 (slower: +" in said and "may be the run" in said
    assert "to see a difference of 2% with 95% power on 30 points takes" in said


def test_the_frame_has_boards_over_all_then_by_network(tmp_path: Path) -> None:
    frame = dlas.variability(board_folders(tmp_path, FACTORS)).frame
    over_all = frame[frame["network"] == "all"].set_index("board")
    assert over_all.loc["b4", "verdict"] == "higher" and 0.04 < over_all.loc["b4", "rd"] < 0.06
    assert set(over_all.drop("b4")["verdict"]) == {"alike"}
    assert len(frame) == 5 + 3 * 5


def test_kernels_are_compared_by_class(tmp_path: Path) -> None:
    frame = dlas.variability(board_folders(tmp_path, FACTORS), by="kernel").frame
    assert set(frame["kernel"]) == {"all", "conv", "linear"}


def test_energy_and_power_are_compared_where_rows_have_them(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / name, list(board_rows(name, energy_j=energy)))
        for name, energy in {"b1": 1.0, "b2": 1.0, "b3": 1.2}.items()
    ]
    frame = dlas.variability(folders, target="energy_j").frame
    assert frame.set_index(["network", "board"]).loc[("all", "b3"), "verdict"] == "higher"


def test_runs_on_one_machine_are_told_apart_by_folder(tmp_path: Path, dlas_here: Command) -> None:
    for name, factor in {"monday": 1.0, "tuesday": 1.1}.items():
        write(tmp_path / name, list(board_rows(name, factor, device=CPU, started=None)))
    said = dlas_here("variability", "monday", "tuesday").stdout
    assert "the boards are its runs" in said and "the two differ by 9." in said
    assert "which of them is unusual takes a third" in said


def test_points_that_a_board_lacks_are_left_out_and_told(tmp_path: Path, dlas_here: Command) -> None:
    write(tmp_path / "b1", list(board_rows("b1")))
    write(tmp_path / "b2", list(board_rows("b2", models=("a", "b"))))
    assert "10 points left out" in dlas_here("variability", "b1", "b2").stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["b1"], "of one board (b1)"),
        (["b1", "b2", "--target", "power"], "did you mean 'power_w'"),
        (["b1", "b2", "--target", "energy_j"], "no row has energy_j"),
        (["b1", "b2", "--by", "layer"], "there are: kernel, network"),
        (["b1", "b2", "--by", "kernel", "--target", "power_w"], "is of whole networks"),
        (["b1", "other"], "no point was measured on all 2 boards (points with a result: b1: 30, other: 10)"),
    ],
)
def test_what_cannot_be_compared_is_one_message(
    options: list[str], said: str, tmp_path: Path, dlas_here: Command
) -> None:
    board_folders(tmp_path, {"b1": 1.0, "b2": 1.0})
    write(tmp_path / "other", list(board_rows("other", models=("d",))))
    done = dlas_here("variability", *options)
    assert done.returncode == 2 and said in done.stderr and not done.stdout


def test_rows_without_layers_have_no_kernels(tmp_path: Path) -> None:
    folders = [
        write(tmp_path / name, [dataclasses.replace(each, layers=[]) for each in board_rows(name)])
        for name in ("b1", "b2")
    ]
    with pytest.raises(InputError, match="no kernel of these rows has latency_s"):
        dlas.variability(folders, by="kernel")
