"""Who is fastest, against the paper's own tables and with ties."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dlas.analysis.roles import with_roles
from dlas.analysis.winners import Standing, Winner, standings
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures import paper
from tests.fixtures.rows import CPU, failing, row, write

TABLES = {
    "3": (paper.CIFAR_CPU, "cifar10"),
    "4": (paper.CIFAR_GPU, "cifar10"),
    "6": (paper.IMAGENET, "imagenet"),
}


def points_of(folder: Path, *rows: Row) -> pd.DataFrame:
    return with_roles(read(write(folder, rows)))


def names(points: pd.DataFrame, winner: Winner, column: str) -> list[str]:
    return [str(points[column].iat[line]) for line in winner.points]


@pytest.mark.parametrize("number", TABLES)
def test_the_papers_tables_give_back_the_papers_winners(tmp_path: Path, number: str) -> None:
    cases = list(paper.cases(*TABLES[number]))
    points = points_of(tmp_path, *(each for case in cases for each in paper.winner_rows(case)))
    found = {
        (str(one.setting["hardware"]), one.tuning == "tuned", str(one.setting["model"])): one
        for one in standings(points)
    }
    assert len(found) == len(cases)
    for case in cases:
        one = found[case.hardware, case.tuned, case.model]
        for compression, best in zip(paper.ORDER, case.algorithms, strict=True):
            winner = one.by_compression.get(paper.COMPRESSIONS[compression])
            expected = [] if best == "-" else [paper.ALGORITHMS[best]]
            assert (names(points, winner, "primitive") if winner else []) == expected, case
        for algorithm, best in zip(paper.ALGORITHMS.values(), case.compressions, strict=True):
            assert names(points, one.by_primitive[algorithm], "compression") == [paper.COMPRESSIONS[best]], (
                case
            )
        overall = names(points, one.overall, "compression") + names(points, one.overall, "primitive")
        assert overall == [paper.COMPRESSIONS[case.overall[0]], paper.ALGORITHMS[case.overall[1]]], case


def only(points: pd.DataFrame) -> Standing:
    (one,) = standings(points)
    return one


def test_overlapping_intervals_are_a_tie_with_the_fastest_first(tmp_path: Path) -> None:
    points = points_of(
        tmp_path,
        row(10, spread=0.2),
        row(9.8, spread=0.2, algorithm="gemm"),
        row(30, algorithm="spatial_pack"),
    )
    winner = only(points).overall
    assert winner.tie and set(names(points, winner, "algorithm")) == {"direct", "gemm"}
    first = points["latency_s"].iloc[list(winner.points)].tolist()
    assert first == sorted(first)


def test_what_failed_is_counted_and_never_wins(tmp_path: Path) -> None:
    points = points_of(
        tmp_path, row(10), failing(algorithm="gemm"), failing("timeout", algorithm="spatial_pack")
    )
    winner = only(points).overall
    assert names(points, winner, "algorithm") == ["direct"] and (winner.tried, winner.failed) == (3, 2)
    nothing = only(points_of(tmp_path / "none", failing(), failing(algorithm="gemm"))).overall
    assert nothing.points == () and (nothing.tried, nothing.failed) == (2, 2)


def test_settings_compilers_and_machines_have_winners_of_their_own(tmp_path: Path) -> None:
    other = {**CPU, "cpu": "Real 1"}
    points = points_of(
        tmp_path,
        row(10),
        row(5, batch=8),
        row(2, compiler="hand"),
        row(1, device=other, id="other"),
        row(1, algorithm="library", compiler="onnxruntime"),
    )
    found = standings(points)
    assert len(found) == 4, "a runtime with kernels of its own takes no part"
    assert [one.tuning for one in found] == ["untuned"] * 3 + ["scheduled"]


def test_a_version_on_another_format_competes_for_its_algorithm(tmp_path: Path) -> None:
    points = points_of(
        tmp_path,
        row(10, algorithm="gemm"),
        row(3, algorithm="csr_gemm", compression="weight_pruning", reached={"ratio": 0.9}),
    )
    one = only(points)
    assert list(one.by_primitive) == ["gemm"]
    assert names(points, one.by_primitive["gemm"], "compression") == ["weight_pruning"]
