"""``dlas search`` and ``dlas blocks``: bad input is one message, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.commands import Command

STUDY = """
name = "s"
[axes]
dataset = [{ name = "random", size = SIZE, classes = 10, images = 2 }]
model = [{ name = "ofa_mobilenet_v3", width = 1.2, subnet = "SUBNET" }]
compiler = ["onnxruntime"]
hardware = [{ name = "local_cpu", threads = 1 }]
[sample]
points = 2
axes = ["model"]
"""
SEARCH = ("--estimator", "measure", "--maximise", "accuracy", "--within", "latency_s=1", "--out", "out")
DIGITS = "34:33,33:33,33:33,33:33,33:33"


@pytest.mark.parametrize(
    ("subnet", "words", "said"),
    [
        ("drawn", ("--within", "latency_s=2"), "--within 'latency_s=2': latency_s has another bound already"),
        ("drawn", ("--within", "=2"), "--within '=2': expected a quantity and a positive number"),
        ("drawn", ("--within", "peak_memory_bytes=2"), "no --estimator tells it; these are told: latency_s"),
        ("drawn", ("--estimator", "nowhere"), "--estimator 'nowhere': there is no such folder"),
        ("drawn", ("--maximise", "nowhere"), "--maximise 'nowhere': there is no such predictor"),
        ("drawn", ("--winners", "-1"), "--winners -1: expected a number from 0 on"),
        (DIGITS, (), "stage '34:33': kernel size 4; expected 3, 5, 7"),
        ("33:33", (), "has 1 stages, separated by commas; expected 5"),
        ("33:33,33:33,33:33,33:33,33:33", (), "a search needs a study that draws"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    tmp_path: Path, dlas_here: Command, subnet: str, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("SIZE", "160").replace("SUBNET", subnet))
    refused(tmp_path, dlas_here, ("search", "study.toml", *SEARCH, *words), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--size", "160,x"), "--size '160,x': expected whole numbers"),
        (("--size", "104"), "images of 104x104: subnetworks of ofa_mobilenet_v3 are for sizes of 112 to 240"),
        (("--width", "1.1"), "--width 1.1: expected 1.0 or 1.2"),
        (("--compiler", "onnxruntim"), "did you mean 'onnxruntime'"),
        (
            ("--hardware", "{ name = 'local_cpu', threads = [1, 2] }"),
            "a table is of one compiler, one device",
        ),
    ],
)
def test_what_is_no_table_is_refused(
    tmp_path: Path, dlas_here: Command, words: tuple[str, ...], said: str
) -> None:
    refused(tmp_path, dlas_here, ("blocks", "out", *words), said)


def refused(folder: Path, dlas_here: Command, words: tuple[str, ...], said: str) -> None:
    """Check that a command leaves with the exit code 2 and a message, and writes nothing."""
    before = sorted(folder.rglob("*"))
    ran = dlas_here(*words)
    assert ran.returncode == 2, ran.stderr
    assert said in " ".join(ran.stderr.split())
    assert sorted(folder.rglob("*")) == before
