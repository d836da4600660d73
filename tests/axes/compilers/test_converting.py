"""Converters that are programs: what they write is kept, and why they fail is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dlas.axes.compilers.programs.converting import convert_graph
from dlas.axes.compression.int8 import Int8
from dlas.axes.datasets.random import Random
from dlas.errors import Unsupported
from dlas.testing.networks import workspace
from tests.fixtures.small_network import SHAPE, network

COPIES = "import shutil; shutil.copy('model.onnx', 'converted'); open('notes', 'w').close()"


def convert(code: str, folder: Path) -> None:
    """Convert the small network by Python code."""
    convert_graph("it", network(), 1, [sys.executable, "-c", code], ("converted",), folder)


def test_what_was_asked_for_is_kept_alone(tmp_path: Path) -> None:
    convert(COPIES, tmp_path / "build")
    assert [path.name for path in (tmp_path / "build").iterdir()] == ["converted"]
    assert (tmp_path / "build/converted").stat().st_size > 1000


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (
            "print('fine'); print('[17:04:43] :220: These Op Not Support: ONNX::Odd')",
            "These Op Not Support: ONNX::Odd",
        ),
        ("raise SystemExit(3)", "exit code 3"),
        ("import os; os.abort()", "died of signal 6"),
        ("print('fine')", "exit code 0"),
        (f"{COPIES}; raise SystemExit(1)", "exit code 1"),
    ],
)
def test_a_converter_that_fails_is_unsupported_with_what_it_says(
    code: str, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(Unsupported, match=f"^it does not convert this network: {cause}$"):
        convert(code, tmp_path / "build")
    assert not (tmp_path / "build").exists()


def test_a_converter_that_is_killed_says_nothing_of_the_network(tmp_path: Path) -> None:
    with pytest.raises(MemoryError, match="was killed"):
        convert("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path)


def test_networks_in_other_numbers_are_not_converted(tmp_path: Path) -> None:
    data = Random(size=SHAPE[1], images=8).load()
    made = Int8(images=8).compress(network(), data, workspace(tmp_path / "work"))
    with pytest.raises(Unsupported, match="it computes in float32 here, and this network is in int8"):
        convert_graph("it", made, 1, ["false"], (), tmp_path)
