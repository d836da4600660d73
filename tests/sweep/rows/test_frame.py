"""Rows as a table."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlas
from dlas.errors import InputError
from dlas.face.reporting import report
from dlas.sweep.rows import columns, intervals
from dlas.sweep.rows.columns import SAMPLES
from dlas.sweep.rows.frame import distinct, read, select, without_measured
from dlas.sweep.rows.labels import amount, factor, label, options, shortened
from dlas.sweep.rows.predictions import FILE as PREDICTIONS
from dlas.sweep.rows.predictions import PredictedPoint
from tests.fixtures.rows import CPU, again, failing, row, write
from tests.fixtures.sweeps import curve

PRUNED = {"name": "weight_pruning", "level": 0.8}
CHAIN = {"name": "chain", "chain": [{"name": "compact_channel_pruning", "level": 0.5}, {"name": "int8"}]}


def test_reading_needs_neither_torch_nor_tvm(tmp_path: Path) -> None:
    write(tmp_path, [row(), row(algorithm="library", compiler="onnxruntime")])
    script = f"""
import sys, dlas
assert "pandas" not in sys.modules and "numpy" not in sys.modules, "import dlas is to stay light"
from dlas.analysis import compare
from dlas.face.console import show
from dlas.face.tables import comparison, points
from dlas.sweep.rows import export
frame = dlas.read({str(tmp_path)!r})
points.table(frame), comparison.grid(compare.compare(frame, "compiler"))
show.show({str(tmp_path)!r}, frame["id"][0])
found = [name for name in sys.modules if name.split(".")[0] in ("torch", "torchvision", "tvm", "onnx")]
assert not found, found
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_says_its_version_and_refuses_other_names() -> None:
    assert dlas.__version__
    assert {"read", "__version__"} <= set(dir(dlas))
    with pytest.raises(AttributeError, match="no attribute 'reed'"):
        _ = dlas.reed


def test_a_line_holds_what_the_row_held(tmp_path: Path) -> None:
    given_row = row(
        10,
        compression=PRUNED,
        hardware={"name": "local_cpu", "threads": 2},
        batch=4,
        energy_j=0.25,
        tuning={"trials": 640, "valid": 612, "seconds": 80.5},
    )
    frame = dlas.read(write(tmp_path, [given_row]))
    line = frame.iloc[0]
    assert line["compression"] == "weight_pruning(level=0.8)"
    assert line["compression_name"] == "weight_pruning"
    assert line["compression.level"] == 0.8
    assert line["hardware.threads"] == 2
    assert line["batch"] == 4
    low, median, high = line["latency_low_s"], line["latency_s"], line["latency_high_s"]
    assert low <= median <= high and median == np.median(given_row.latency_s)
    assert line["samples"] == 20 and list(line[SAMPLES]) == given_row.latency_s
    assert line["coverage"] == 1.0 and line["measure_s"] == 2.0 and pd.isna(line["tune_s"])
    assert line["compiled_accuracy_low"] == 0.93 and line["energy_j"] == 0.25
    assert line["trials"] == 640 and line["search_s"] == 80.5
    assert line["machine"] == "Imaginary 9000, 2 cores, otherwise unknown" and line["host"] == "somewhere"
    assert line["started"] == pd.Timestamp("2026-01-02T03:04:05Z")


def test_a_chain_is_its_techniques(tmp_path: Path) -> None:
    line = read(write(tmp_path, [row(compression=CHAIN)])).iloc[0]
    assert line["compression"] == "compact_channel_pruning(level=0.5)+int8"
    assert line["compression_name"] == "compact_channel_pruning+int8"
    assert line["compression.compact_channel_pruning.level"] == 0.5


def test_a_technique_twice_in_a_chain_keeps_both_options() -> None:
    chain = {"name": "chain", "chain": [{"name": "prune", "level": 0.1}, {"name": "prune", "level": 0.2}]}
    assert options(chain) == {"prune.level": 0.1, "prune_2.level": 0.2}


def test_columns_keep_their_types_when_nothing_is_known(tmp_path: Path) -> None:
    full = read(write(tmp_path / "full", [row()]))
    bare = read(write(tmp_path / "bare", [failing("failed"), failing("timeout", batch=2)]))
    empty = read(write(tmp_path / "empty", []))
    assert full.dtypes.to_dict() == bare.dtypes.to_dict() == empty.dtypes.to_dict()
    assert bare["latency_s"].isna().all() and bare["samples"].tolist() == [0, 0]
    assert bare["reason"].tolist() == ["it was failed", "it was timeout"]


def test_what_compression_reached_has_columns_of_its_own(tmp_path: Path) -> None:
    steps = curve([0.5, 0.9], 0.98, 0.9)
    reached = {"level": 0.9, "units": 0.8, "ratio": 0.91, "layers": {"conv1": 0.4}, "curve": steps}
    found = row(
        reached=reached, effective_macs=7, csr_bytes=9, packed_bytes=8, test_images=450, compression="p"
    )
    frame = read(write(tmp_path, [row(), found, row(batch=2, reached={"bits": 8})]))
    line = frame.loc[[1]].to_dict("records")[0]
    assert [line[name] for name in ("level", "units", "ratio", "fine_tuning_s")] == [0.9, 0.8, 0.91, 20.0]
    counts = ("effective_macs", "csr_bytes", "packed_bytes", "test_images")
    assert [line[name] for name in counts] == [7, 9, 8, 450]
    assert frame["bits"].tolist()[2] == 8 and frame.loc[0, ["level", "fine_tuning_s"]].isna().all()
    assert not {"curve", "layers"} & set(frame)


def test_options_take_the_narrowest_type_that_holds_them(tmp_path: Path) -> None:
    models = [{"name": "m", "width": 1, "path": "a", "wide": True}, {"name": "m", "width": 0.5, "mixed": 1}]
    rows = [
        row(model=content) for content in [*models, {"name": "m", "mixed": "x"}, {"name": "n", "depth": 3}]
    ]
    frame = read(write(tmp_path, rows))
    types = {name: str(frame[f"model.{name}"].dtype) for name in ("width", "path", "wide", "mixed", "depth")}
    assert types == {
        "width": "float64",
        "path": "string",
        "wide": "boolean",
        "mixed": "string",
        "depth": "Int64",
    }


def test_a_row_of_an_older_schema_is_read(tmp_path: Path) -> None:
    old = '{"id":"a","key":"k","study":"s","dataset":"digits","model":{"name":"m"},'
    old += '"compression":{"name":"none"},'
    old += '"algorithm":{"name":"direct"},"compiler":{"name":"untuned"},"hardware":{"name":"local_cpu"},'
    old += '"batch":1,"seed":0,"status":"ok","latency_s":null,"seconds":null,"device":null,"coverage":null,'
    old += '"macs":null,"peak_memory_bytes":1.5,"gone":1}\n'
    line = read(write(tmp_path, [], tail=old)).iloc[0]
    assert line["dataset"] == "digits" and line["dataset_name"] == "digits"
    assert pd.isna(line["latency_s"]) and pd.isna(line["macs"]) and pd.isna(line["coverage"])
    assert line["resident_bytes"] == 2 and pd.isna(line["peak_memory_bytes"])


def test_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    torn = write(tmp_path / "torn", [row()], tail='{"id":"half')
    assert len(read(torn)) == 1
    with pytest.raises(InputError, match=r"no results\.jsonl"):
        read(tmp_path)


def test_a_retry_replaces_its_row(tmp_path: Path) -> None:
    first = failing()
    frame = read(write(tmp_path, [first, row(batch=2), again(row(), started="2026-01-03T00:00:00+00:00")]))
    assert frame["status"].tolist() == ["ok", "ok"] and frame["batch"].tolist() == [2, 1]


def test_several_folders_are_distinguished(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, [row()]) for name in ("a", "b")]
    frame = read(folders)
    assert frame["folder"].tolist() == [str(folder) for folder in folders]
    assert frame["id"].tolist() == [row().id] * 2


def test_a_folder_given_twice_counts_once(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", [row(), row(batch=2)])
    (tmp_path / "link").symlink_to(folder)
    twice: list[str | Path] = [folder, f"{folder}/../a", tmp_path / "link"]
    assert distinct(twice) == [folder]
    assert read(twice)["id"].tolist() == read(folder)["id"].tolist()


def test_a_report_of_a_folder_given_twice_is_of_one(tmp_path: Path) -> None:
    layers = [{"name": "conv", "algorithm": "direct", "latency_s": 5e-3}]
    folder = write(tmp_path / "a", [row(layers=layers)])
    report([folder, tmp_path / "b" / ".." / "a"], tmp_path / "report.html")
    assert "1 point from" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_failure_belongs_to_the_machine_of_its_folder_if_there_is_one(tmp_path: Path) -> None:
    one = write(tmp_path / "one", [row(), failing(batch=2)])
    assert read(one)["machine"].tolist() == ["Imaginary 9000, 2 cores, otherwise unknown"] * 2
    other = row(batch=3, device={**CPU, "cpu": "Real 1"})
    two = write(tmp_path / "two", [row(), other, failing(batch=2)])
    assert read(two)["machine"].isna().tolist() == [False, False, True]


def test_filters_match_labels_and_names(tmp_path: Path) -> None:
    frame = read(
        write(tmp_path, [row(compression=PRUNED), row(), row(model="vgg", batch=8), failing(batch=2)])
    )
    assert len(select(frame, ["compression=weight_pruning"])) == 1
    assert len(select(frame, ["compression=*level=0.8*"])) == 1
    assert len(select(frame, ["batch=8", "batch=2"])) == 2
    assert len(select(frame, ["batch=8", "model=cifar_*"])) == 0
    assert len(select(frame, [" status = failed "])) == 1
    assert len(select(frame, [])) == 4


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("compiller=x", "did you mean 'compiler'"),
        ("compiler", "not of the form axis=pattern"),
        ("model=cifar_resnet81", "did you mean 'cifar_resnet18'"),
    ],
)
def test_a_malformed_filter_is_refused(tmp_path: Path, where: str, message: str) -> None:
    frame = read(write(tmp_path, [row()]))
    with pytest.raises(InputError, match=message):
        select(frame, [where])


def resampled(samples: list[float], stream: int) -> np.ndarray:
    """Return the medians of 1,000 resamples, each drawn and ordered by itself."""
    places = np.random.default_rng(stream).integers(len(samples), size=(1000, len(samples)))
    medians: np.ndarray = np.median(np.sort(samples)[places], axis=1)
    return medians


@given(st.lists(st.lists(st.floats(1e-6, 10), min_size=1, max_size=30), min_size=1, max_size=8))
def test_intervals_of_many_rows_are_percentiles_of_each_rows_resampled_medians(
    samples: list[list[float]],
) -> None:
    together = intervals.medians([np.array(values) for values in samples])
    for values, interval in zip(samples, together.tolist(), strict=True):
        low, high = np.quantile(resampled(values, stream=0), [(1 - 0.95) / 2, (1 + 0.95) / 2])
        assert interval == [np.median(values), low, high]
        assert tuple(interval) == intervals.median(values) == intervals.median(sorted(values))


def test_intervals_of_ratios_are_percentiles_of_ratios_of_resampled_medians() -> None:
    draw = np.random.default_rng(7)
    above, below = draw.lognormal(0, 0.1, 150), draw.lognormal(1, 0.1, 140)
    (ratio,) = intervals.ratios([above], [below])
    drawn = resampled(above.tolist(), stream=0) / resampled(below.tolist(), stream=1)
    expected = [np.median(above) / np.median(below), *np.quantile(drawn, [0.025, 0.975])]
    assert ratio == pytest.approx(expected, rel=0.01)


def test_amounts_have_si_prefixes() -> None:
    assert [amount(value, "B") for value in (0, 640, 999.6, 12_345_678)] == [
        "0 B",
        "640 B",
        "1 kB",
        "12.3 MB",
    ]
    assert amount(555_422_720) == "555 M" and amount(0.25, "J") == "0.25 J"
    assert [factor(value) for value in (1.831, 12.34, 345.6, 0.0456)] == ["1.83", "12.3", "346", "0.0456"]
    assert len(shortened("word " * 100)) == 160 and shortened(" two\nlines ") == "two lines"
    assert label({"name": "plain"}) == "plain" and label({"name": "m", "b": 1, "a": "x"}) == "m(a=x, b=1)"


@pytest.mark.slow
def test_ten_thousand_rows_are_read_in_time_that_grows_with_them(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        one = row(samples=150).line()
        lines = "".join(
            one.replace('"seed":0', f'"seed":{i}', 1).replace('"id":"', f'"id":"{i}-', 1)
            for i in range(count)
        )
        folder = write(tmp_path / str(count), [], tail=lines)
        begun = time.process_time()
        assert len(read(folder)) == count
        return time.process_time() - begun

    seconds(100)
    assert seconds(10_000) < 20 * max(seconds(1_000), 0.05)


def test_predictions_give_way_to_rows_of_the_same_one_of_machines_alike(tmp_path: Path) -> None:
    board = {**CPU, "instance": "first"}
    write(tmp_path, [row(device=board), row(batch=2, device=board)])
    predicted = [
        PredictedPoint(row(batch=batch, device={**CPU, "instance": instance}), {}, "p", True, "")
        for batch, instance in ((1, "first"), (1, "second"), (4, "first"))
    ]
    (tmp_path / PREDICTIONS).write_text("".join(point.line() for point in predicted))
    kept = without_measured(read(tmp_path, predictions=True)).query("status == 'predicted'")
    assert kept[["batch", "instance"]].to_numpy().tolist() == [[1, "second"], [4, "first"]]


def test_the_type_of_a_column_is_that_of_its_field() -> None:
    assert set(columns.TRUTHS) == {"noisy", "throttled"}
    assert {"energy_j", "accuracy"} < set(columns.FLOATS) and {"batch", "macs"} < set(columns.INTEGERS)
    assert "reason" in columns.TEXTS and "task" not in columns.TEXTS, "which is never missing"
    typed = {*columns.TEXTS, *columns.TRUTHS, *columns.FLOATS, *columns.INTEGERS}
    assert typed < set(columns.ORDER) and "schema" not in typed
