"""The benchmark of number types: what its studies measure, and what its table compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from benchmarks import precision
from benchmarks.precision import ALGORITHMS, TYPES, print_table, written
from dlas.sweep.rows.results import Row
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study
from tests.fixtures.rows import row

OPTIONS = {"network": "resnet18", "algorithms": ALGORITHMS, "count": 1, "seconds": 1.0}
INT8 = {"name": "int8", "calibration": "none"}


def points(folder: Path, *peers: str) -> list[Point]:
    """Return the points of a network's study, `hand` beside these peers."""
    (folder / "study.toml").write_text(written([*TYPES], ['"hand"'], peers, OPTIONS))
    return list(Study.read(folder / "study.toml").points())


@pytest.mark.parametrize("sums_in_32_bits", [True, False])
def test_every_type_by_every_algorithm_and_peers_once(
    sums_in_32_bits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision, "adds_bytes_in_32_bits", lambda: sums_in_32_bits)
    found = points(tmp_path, "onnxruntime")
    ours = [point for point in found if point.compiler.name == "hand"]
    assert len(ours) == 5 * len(TYPES) == len({(point.compression, point.algorithm) for point in ours})
    as_they_come = [point.compression.name for point in found if point.compiler.options]
    assert as_they_come == ([] if sums_in_32_bits else ["int8"])
    assert len(found) == len(ours) + len(TYPES) + len(as_they_come)


def test_types_and_compilers_that_do_not_exist_are_named() -> None:
    with pytest.raises(typer.BadParameter, match="type 'int4'; there are: float32, float16, bfloat16, int8"):
        precision.main(types="float32,int4")
    with pytest.raises(typer.BadParameter, match="compiler 'tuned'; there are: untuned, hand, metaschedule"):
        precision.main(compilers="hand,tuned")


def test_a_speed_is_against_each_peer_in_the_same_type_and_a_gain_against_float32(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_table("a network", ROWS, threads=1)
    lines = {tuple(line.split()[:3]): line.split()[3:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert lines["int8", "direct", "hand"] == ["2.000", "1.50", "5.00", "4.00", "4.00", "100%"]
    assert lines["float32", "direct", "hand"] == ["8.000", "1.25", "2.50", "1.00", "1.00", "100%"]
    assert lines["int8", "library", "openvino"] == ["10.00", "0.300", "1.00", "2.00", "4.00", "50%"]
    assert lines["int8", "gemm", "hand"] == ["unsupported"]


def test_on_several_threads_the_clock_counts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    print_table("a network", ROWS, threads=2)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "int8" in line and "direct" in line]
    assert line.split()[3:] == ["20.00", "1.50", "5.00", "4.00", "4.00", "100%"]


def made(ms: float, compiler: str, integers: bool = False) -> Row:
    """Return a row whose latency is ten times its processor time."""
    algorithm = "direct" if compiler == "hand" else "library"
    small: dict[str, Any] = (
        {"compression": INT8, "expected_speedup": 4.0} if integers else {"expected_speedup": 1.0}
    )
    return row(10 * ms, spread=0, compiler=compiler, algorithm=algorithm, cpu_s=ms * 1e-3, **small)


ROWS = [
    made(3, "onnxruntime", integers=True),
    made(10, "openvino", integers=True),
    made(2, "hand", integers=True),
    row(compiler="hand", compression=INT8, algorithm="gemm", status="unsupported"),
    made(8, "hand"),
    made(10, "onnxruntime"),
    made(20, "openvino"),
]
