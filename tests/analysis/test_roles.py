"""What parts are to one another, from the rows alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlas.analysis.roles import primitive, with_roles
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import CPU, again, failing, row, write


def roles(folder: Path, column: str, *rows: Row) -> list[object]:
    return list(with_roles(read(write(folder, rows)))[column])


def test_a_compiler_that_searches_is_tuned_whatever_its_name(tmp_path: Path) -> None:
    found = roles(
        tmp_path,
        "tuning",
        row(),
        row(compiler="hand"),
        row(compiler={"name": "annealing", "trials": 8}),
        row(compiler="genetic", tuning={"trials": 16}),
        failing(compiler="genetic", batch=8),
        row(compiler="quick", seconds={"tune": 3.0}),
        row(compiler="onnxruntime", algorithm="library"),
    )
    assert found == ["untuned", "scheduled", "tuned", "tuned", "tuned", "tuned", "runtime"]


def test_a_compression_is_what_it_reached(tmp_path: Path) -> None:
    chain = {"name": "chain", "chain": [{"name": "thin"}, {"name": "bytes"}]}
    found = roles(
        tmp_path,
        "kind",
        row(),
        row(compression="thin", reached={"ratio": 0.5}),
        failing(compression="thin", batch=8),
        row(compression="bytes", reached={"bits": 8}),
        row(compression=chain, reached={"bits": 8, "ratio": 0.5}),
        row(compression="distilled"),
    )
    assert found == ["dense", "pruned", "pruned", "types", "chained", "other"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("csr_gemm", "gemm"), ("gemm", "gemm"), ("bsr_spatial_pack", "spatial_pack"), ("fft", "fft")],
)
def test_a_primitive_is_the_algorithm_without_its_format(name: str, expected: str) -> None:
    assert primitive(name, ["gemm", "pack", "spatial_pack"]) == expected


def test_a_processor_is_that_of_the_profile_or_of_the_row(tmp_path: Path) -> None:
    gpu = {"name": "board", "gpu": "Some GPU", "cpu": "Its host"}
    found = roles(
        tmp_path,
        "processor",
        row(),
        row(hardware="board", device=gpu),
        failing(hardware="hikey_970_gpu"),
        failing(hardware="hikey_970_cpu"),
        failing(hardware="nobody_knows"),
    )
    assert found[:4] == ["cpu", "gpu", "gpu", "cpu"] and str(found[4]) == "<NA>"


def test_times_of_a_point_count_together_and_a_failure_replaces_none(tmp_path: Path) -> None:
    first, second = row(10, started="2026-01-01T00:00:00Z"), row(20, started="2026-01-02T00:00:00Z")
    failed = again(failing(device=CPU), started="2026-01-03T00:00:00Z")
    folders = [write(tmp_path / name, [each]) for name, each in (("a", first), ("b", second), ("c", failed))]
    points = with_roles(read(folders))
    assert len(points) == 1 and points["latency_s"].iat[0] == pytest.approx(0.015, rel=0.05)
    assert points["folder"].tolist() == [str(folders[1])]
