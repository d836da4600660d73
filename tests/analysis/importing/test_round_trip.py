"""A folder that is exported and imported again is the same table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dlas
from dlas.face.tables.points import table
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study.point import Point
from tests.fixtures.package import ROOT
from tests.fixtures.printing import printed
from tests.fixtures.rows import failing, row, write

KEPT = {
    "an old sweep": ROOT / "tests/sweep/rows/recorded",
    "sparse": ROOT / "experiments/sparse-break-even/rows",
    "tuned": ROOT / "experiments/tuned-vs-untuned/rows",
}


def again(folder: Path, suffix: str, at: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of a folder, and those of a folder that its export was imported into."""
    before = dlas.read(folder)
    file = dlas.export(before, at / f"rows.{suffix}")
    return before, dlas.import_rows(file, at / "imported")


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("folder", KEPT.values(), ids=KEPT)
def test_a_table_that_went_through_a_file_is_the_same(tmp_path: Path, folder: Path, suffix: str) -> None:
    before, after = again(folder, suffix, tmp_path)
    lost = ["folder"] if suffix == "parquet" else ["folder", SAMPLES]
    if suffix == "parquet":
        for own, imported in zip(before.pop(SAMPLES), after.pop(SAMPLES), strict=True):
            np.testing.assert_array_equal(own, imported)
    pd.testing.assert_frame_equal(
        before.drop(columns=lost, errors="ignore"), after.drop(columns=lost, errors="ignore")
    )
    assert printed(table(dlas.read(folder))) == printed(table(dlas.read(tmp_path / "imported")))


def test_a_row_says_where_it_is_from_and_nothing_that_nobody_knows(tmp_path: Path) -> None:
    folder = KEPT["an old sweep"]
    file = dlas.export(dlas.read(folder), tmp_path / "rows.csv")
    dlas.import_rows(file, tmp_path / "imported")
    first, *_ = read_rows(tmp_path / "imported")
    origin = first.imported
    assert origin is not None and (origin["file"], origin["line"]) == ("rows.csv", 2)
    assert len(origin["sha256"]) == 64 and not first.layers and not first.artifacts and first.key == ""
    line = json.loads((tmp_path / "imported" / "results.jsonl").read_text().splitlines()[0])
    assert not [name for name, value in line.items() if value is None]


def test_options_of_every_type_and_chains_keep_their_ids(tmp_path: Path) -> None:
    chain = [{"name": "weight_pruning", "level": 1}, {"name": "int8", "images": 64, "per_channel": True}]
    contents: list[dict[str, Any]] = [
        {"compression": {"name": "weight_pruning+int8", "chain": chain}},
        {"compression": {"name": "weight_pruning", "level": 0.5}},
        {"compression": {"name": "weight_pruning", "level": "elbow"}},
        {"compression": {"name": "elsewhere", "level": "0.5"}},
        {"model": {"name": "elsewhere", "blocks": [1, 2, 3], "deep": False, "subnet": "75:64,77:63"}},
        {"model": {"name": "elsewhere", "blocks": ["a", "b"], "width": 1}},
        {"model": {"name": "elsewhere", "width": 1.5}, "batch": 8, "seed": 3},
        {"task": "training", "compiler": "torch_eager"},
    ]
    rows = [row(10 + number, **content) for number, content in enumerate(contents)] + [failing("timeout")]
    for each in rows:
        each.id = Point.of(vars(each)).id
    for suffix in ("csv", "parquet"):
        before, after = again(write(tmp_path / suffix, rows), suffix, tmp_path / suffix)
        assert after["id"].tolist() == before["id"].tolist() == [each.id for each in rows]
        assert [Point.of(vars(each)).content() for each in read_rows(tmp_path / suffix / "imported")] == [
            Point.of(vars(each)).content() for each in rows
        ]


def test_a_machine_keeps_its_fingerprint_and_its_rows_are_repeats_of_those_from_there(tmp_path: Path) -> None:
    before, after = again(KEPT["tuned"], "parquet", tmp_path)
    assert after["machine_id"].equals(before["machine_id"])
    both = dlas.table([KEPT["tuned"], tmp_path / "imported"]).frame
    assert len(both) == len(before), "a copy of a row is no other point"


def test_an_equal_point_has_the_id_that_it_has_here_though_its_defaults_are_written(tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    file.write_text(
        "dataset,dataset.size,dataset.classes,model,algorithm,compiler,hardware,machine,latency_ms\n"
        "random,32,20.0,cifar_resnet18,direct,hand,local_cpu,Another,12.5\n"
    )
    study = dlas.Study({"dataset": [{"name": "random", "classes": 20}], "compiler": ["hand"]})
    (point,) = study.points()
    (own,) = dlas.import_rows(file, tmp_path / "rows")["id"]
    assert own == point.id


def test_a_table_of_before_says_by_a_flag_which_rows_are_unstable(tmp_path: Path) -> None:
    frame = dlas.read(write(tmp_path / "rows", [row(1), row(2, batch=2)]))
    frame["unstable"], frame["unstable_reason"] = [True, False], ["the medians differ", None]
    file = dlas.export(frame.drop(columns="id"), tmp_path / "rows.csv")
    found = dlas.import_rows(file, tmp_path / "imported")
    assert found["status"].tolist() == ["unstable", "ok"]
    assert found["reason"].fillna("none").tolist() == ["the medians differ", "none"]
