"""Expected and achieved speed-ups."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dlas.analysis.observations import Evidence
from dlas.analysis.roles import with_roles
from dlas.analysis.speedups import speedups
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import failing, row, write

PRUNED = {"name": "weight_pruning", "level": 0.95}


def found(folder: Path, *rows: Row) -> pd.DataFrame:
    return speedups(with_roles(read(write(folder, rows))))


def test_the_papers_example(tmp_path: Path) -> None:
    # Section 5.1.2: pruned by 95 %, expected 20x, achieved 2.6x, which is 13.0 % of it.
    rows = [
        row(26, samples=150, spread=1e-4),
        row(40, algorithm="gemm"),
        row(10, samples=150, spread=1e-4, compression=PRUNED, algorithm="csr_gemm", reached={"ratio": 0.95}),
        row(30, compression=PRUNED, algorithm="csr_direct", reached={"ratio": 0.95}),
    ]
    line = found(tmp_path, *rows).iloc[0]
    assert line["expected"] == pytest.approx(20) and line["achieved"] == pytest.approx(2.6, rel=1e-3)
    assert line["share"] == pytest.approx(0.13, rel=1e-3) and line["low"] <= line["achieved"] <= line["high"]
    assert line["tried"] == 2 and line["failed"] == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"reached": {"bits": 8}}, 4),
        ({"reached": {"bits": 16}}, 2),
        ({"reached": {"ratio": 0.8}}, 5),
        ({"reached": {"ratio": 0.8}, "expected_speedup": 7.0}, 7),
    ],
)
def test_the_expected_speedup_is_the_rows_or_follows_from_ratio_and_bits(
    tmp_path: Path, given: dict[str, Any], expected: float
) -> None:
    line = found(tmp_path, row(10), row(5, compression="smaller", **given)).iloc[0]
    assert line["expected"] == pytest.approx(expected)


def test_of_a_path_the_multiply_adds_that_it_saves_are_expected(tmp_path: Path) -> None:
    """Older versions wrote 1, or what the number type alone promises."""
    path = {"name": "leaf", "path": "11"}
    rows = [
        row(10, macs=400),
        row(5, compression={"name": "leaf", "path": "00"}, macs=400, expected_speedup=1.0),
        row(4, compression=path, reached={"path": "11"}, macs=100, expected_speedup=1.0),
        row(
            2,
            compression={"chain": [path, {"name": "int8"}]},
            reached={"path": "11", "bits": 8},
            macs=100,
            effective_macs=50,
            expected_speedup=4.0,
        ),
        row(3, compression={**path, "path": "01"}, reached={"path": "01"}, expected_speedup=1.5),
    ]
    older = [replace(each, schema=3) for each in rows]
    lines = found(tmp_path, *older).set_index("compression")["expected"]
    assert lines.to_dict() == pytest.approx(
        {"leaf(path=00)": 1, "leaf(path=11)": 4, "leaf(path=11)+int8": 32, "leaf(path=01)": 1.5}
    )
    assert read(tmp_path)["expected_speedup"].tolist()[2:] == [pytest.approx(math.nan, nan_ok=True)] * 2 + [
        1.5
    ]


def test_the_baseline_is_the_dense_network_of_the_same_setting_and_compiler(tmp_path: Path) -> None:
    rows = [
        row(10),
        row(3, compiler="hand"),
        row(80, batch=8),
        row(5, compression=PRUNED),
        row(40, batch=8, compression=PRUNED),
    ]
    assert found(tmp_path, *rows)["achieved"].tolist() == pytest.approx([2, 2], rel=0.05)


def test_removed_channels_stand_beside_masked_ones(tmp_path: Path) -> None:
    kinds = {name: {"name": name, "level": 0.5} for name in ("channel_pruning", "compact_channel_pruning")}
    rows = [
        row(10),
        *(
            row(ms, compression=kind, reached={"ratio": 0.5})
            for ms, kind in zip((10, 5), kinds.values(), strict=True)
        ),
    ]
    lines = found(tmp_path, *rows)
    assert lines["compression_name"].tolist() == list(kinds) and set(lines["kind"]) == {"pruned"}
    assert lines["expected"].tolist() == pytest.approx([2, 2])
    assert lines["achieved"].tolist() == pytest.approx([1, 2], rel=0.05)


def test_a_runtime_is_compared_with_itself(tmp_path: Path) -> None:
    runtime: dict[str, Any] = {"algorithm": "library", "compiler": "onnxruntime"}
    rows = [row(30), row(10, **runtime), row(4, compression="int8", reached={"bits": 8}, **runtime)]
    (line,) = found(tmp_path, *rows).to_dict("records")
    assert line["compiler"] == "onnxruntime" and line["achieved"] == pytest.approx(2.5, rel=0.05)
    points = with_roles(read(tmp_path))
    assert len(Evidence(points).all_speedups) == 1 and Evidence(points).speedups.empty


def test_compressions_without_a_time_are_listed_with_the_reason(tmp_path: Path) -> None:
    rows = [row(5, compression=PRUNED), row(1, batch=8), failing(batch=8, compression=PRUNED)]
    lines = found(tmp_path, *rows)
    assert lines["missing"].tolist() == ["no time of the dense network", "no time of its own"]
    assert lines["achieved"].isna().all() and lines["failed"].tolist() == [0, 1]


def test_without_compression_there_is_nothing(tmp_path: Path) -> None:
    lines = found(tmp_path, row(), row(algorithm="library", compiler="onnxruntime"))
    assert lines.empty and {"achieved", "low", "high", "share"} <= set(lines)
