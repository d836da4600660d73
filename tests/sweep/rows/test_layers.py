"""The frame of layers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow.parquet
import pytest

import dlas
from dlas.stack import Layer
from dlas.sweep.rows.export import export
from dlas.sweep.rows.results import Row
from tests.fixtures.commands import Command
from tests.fixtures.rows import failing, row, write

CONV: Layer = {
    "name": "layer1.0.conv1",
    "latency_s": 4e-3,
    "algorithm": "spatial_pack",
    "options": {"layout": "blocked"},
    "n": 1,
    "c": 64,
    "k": 128,
    "strides": [2, 1],
    "padding": [1, 2, 3, 4],
    "types": {"input": "float32"},
    "macs": 1_000_000,
    "operator": "Conv",
    "fused": ["Add", "Relu"],
    "inputs": [[1, 64, 28, 28], [1, 128, 28, 28]],
    "decisions": {"tile": 8},
}
DECLINED: Layer = {**CONV, "name": "conv2", "algorithm": "direct", "options": {}, "declined": "too small"}
POOL: Layer = {"name": "pool", "latency_s": 1e-3}
PRUNED = {"name": "weight_pruning", "level": 0.8}


def rows() -> list[Row]:
    return [
        row(10, compression=PRUNED, algorithm="blocked", layers=[CONV, DECLINED, POOL]),
        row(2, algorithm="library", compiler="onnxruntime", layers=[{**CONV, "algorithm": "library"}]),
        failing(batch=2),
    ]


def test_each_layer_of_each_row_is_a_line(tmp_path: Path) -> None:
    frame = dlas.read(write(tmp_path, rows()), layers=True)
    assert frame["number"].tolist() == [0, 1, 2, 0]
    assert frame["layer"].tolist() == ["layer1.0.conv1", "conv2", "pool", "layer1.0.conv1"]
    assert frame["algorithm"].tolist() == ["blocked"] * 3 + ["library"]
    assert frame["ran"].fillna("-").tolist() == ["spatial_pack", "direct", "-", "library"]
    assert frame["covered"].astype("string").fillna("-").tolist() == ["True", "False", "-", "-"]
    first = frame.iloc[0]
    assert (first["c"], first["k"], first["stride_h"], first["stride_w"]) == (64, 128, 2, 1)
    assert first[["padding_top", "padding_left", "padding_bottom", "padding_right"]].tolist() == [1, 2, 3, 4]
    assert (first["ran_options"], first["type_input"]) == ("layout=blocked", "float32")
    assert (first["fused"], first["decisions"]) == ('["Add", "Relu"]', '{"tile": 8}')
    assert (first["operator"], first["inputs"]) == ("Conv", "[[1, 64, 28, 28], [1, 128, 28, 28]]")
    assert (first["compression"], first["compression.level"]) == ("weight_pruning(level=0.8)", 0.8)
    assert frame["machine"].nunique() == 1 and frame["id"].nunique() == 2
    assert first["network_latency_s"] == pytest.approx(10e-3, rel=0.05)


def test_times_of_layers_are_without_the_profilers_cost(tmp_path: Path) -> None:
    frame = dlas.read(write(tmp_path, rows()), layers=True)
    library = frame[frame["ran"] == "library"]
    assert library["profiled_s"].tolist() == [4e-3], "twice as long as the network takes"
    assert library["latency_s"].sum() == pytest.approx(library["network_latency_s"].iloc[0])


def test_layers_are_exported_like_rows(tmp_path: Path, dlas_here: Command) -> None:
    folder = write(tmp_path / "rows", rows())
    frame = dlas.read(folder, layers=True)
    for name in ("layers.parquet", "layers.csv"):
        said = dlas_here("export", str(folder), "--layers", "--where", "algorithm=blocked", "--to", name)
        assert said.returncode == 0, said.stderr
    back = pd.read_parquet(tmp_path / "layers.parquet")
    assert back.columns.tolist() == frame.columns.tolist() and back["number"].tolist() == [0, 1, 2]
    csv = pd.read_csv(tmp_path / "layers.csv")
    assert csv["layer"].tolist() == back["layer"].tolist() and csv["covered"].tolist()[:2] == [True, False]


def test_types_do_not_depend_on_missing_values(tmp_path: Path) -> None:
    some, none = (
        export(dlas.read(write(tmp_path / name, kept), layers=True), tmp_path / f"{name}.parquet")
        for name, kept in (("some", [row(layers=[CONV])]), ("none", [failing()]))
    )
    assert pyarrow.parquet.read_schema(some).equals(pyarrow.parquet.read_schema(none))
