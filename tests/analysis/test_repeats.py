"""Rows of one point in several folders: one line with the samples of all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dlas.analysis.repeats import merge_repeats
from dlas.face.reporting import report
from dlas.face.tables.points import table
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from tests.fixtures.printing import printed
from tests.fixtures.rows import CPU, failing, row, write

FIRST, SECOND, THIRD = (f"2026-01-0{day}T00:00:00+00:00" for day in (1, 2, 3))


def frame_of(folder: Path, *runs: list[Row]) -> pd.DataFrame:
    """Return the rows of several folders, ``0`` and so on."""
    return read([write(folder / str(number), rows) for number, rows in enumerate(runs)])


def test_the_samples_of_all_runs_count(tmp_path: Path) -> None:
    runs = [
        row(ms, sampled=ms, samples=count, started=s) for ms, count, s in ((12, 20, SECOND), (10, 30, FIRST))
    ]
    frame = frame_of(tmp_path, [runs[0], row(batch=2)], [runs[1]])
    points = merge_repeats(frame)
    assert len(frame) == 3 and len(points) == 2
    line = points[points["batch"] == 1].iloc[0]
    assert sorted(line["latency_samples_s"]) == sorted([*runs[0].latency_s, *runs[1].latency_s])
    assert line["samples"] == 50 and line["runs"] == 2
    assert line["latency_s"] == pytest.approx(np.median([*runs[0].latency_s, *runs[1].latency_s]))
    assert line["latency_low_s"] == pytest.approx(0.010, rel=0.02) and line["latency_high_s"] > 0.0101
    assert line["spread"] == pytest.approx(0.2, rel=0.05)
    assert line["folder"] == str(tmp_path / "0") and line["folders"] == (
        str(tmp_path / "1"),
        str(tmp_path / "0"),
    )
    alone = points[points["batch"] == 2].iloc[0]
    assert alone["runs"] == 1 and np.isnan(alone["spread"]) and alone["folders"] == (str(tmp_path / "0"),)
    assert points[list(frame)].dtypes.to_dict() == frame.dtypes.to_dict()


def test_everything_else_is_the_latest_runs_and_disturbances_are_the_worst(tmp_path: Path) -> None:
    quiet = row(10, started=THIRD, load=0.1, accuracy=0.5)
    noisy = row(10, sampled=1, started=FIRST, load=0.4, accuracy=0.4, noisy=True, noisy_reason="it hailed")
    line = merge_repeats(frame_of(tmp_path, [quiet], [noisy])).iloc[0]
    assert line["accuracy"] == 0.5 and line["load"] == 0.4
    assert line["noisy"] and line["noisy_reason"] == "it hailed"


def test_a_point_is_throttled_if_any_run_was(tmp_path: Path) -> None:
    runs = [row(10, started=THIRD, throttled=False)], [row(10, sampled=1, started=FIRST, throttled=True)]
    assert merge_repeats(frame_of(tmp_path / "one", *runs)).iloc[0]["throttled"] is np.True_
    quiet = [row(10, started=THIRD, throttled=False)], [row(10, sampled=1, started=FIRST)]
    assert merge_repeats(frame_of(tmp_path / "none", *quiet)).iloc[0]["throttled"] is np.False_
    unknown = [row(10, started=THIRD)], [row(10, sampled=1, started=FIRST)]
    assert merge_repeats(frame_of(tmp_path / "unknown", *unknown)).iloc[0]["throttled"] is pd.NA


def test_a_run_that_failed_has_no_part_in_a_point_with_a_time(tmp_path: Path) -> None:
    lost = failing(started=THIRD, device=CPU)
    line = merge_repeats(frame_of(tmp_path, [row(10, started=FIRST)], [lost])).iloc[0]
    assert line["status"] == "ok" and line["runs"] == 1 and line["samples"] == 20
    both = merge_repeats(
        frame_of(tmp_path / "lost", [failing(started=FIRST)], [failing(status="wrong", started=SECOND)])
    )
    assert both["status"].tolist() == ["wrong"] and both["runs"].tolist() == [1]


def test_a_copy_is_no_run_of_its_own(tmp_path: Path) -> None:
    one, other = row(10, started=FIRST), row(11, sampled=1, started=SECOND)
    line = merge_repeats(frame_of(tmp_path, [one], [one], [other])).iloc[0]
    assert line["runs"] == 2 and line["samples"] == 40
    assert merge_repeats(frame_of(tmp_path / "copies", [one], [one]))["runs"].tolist() == [1]


def test_machines_and_seeds_are_points_of_their_own(tmp_path: Path) -> None:
    other = row(10, device={**CPU, "cpu": "Real 1"})
    assert len(merge_repeats(frame_of(tmp_path, [row(10), row(10, seed=1)], [other]))) == 3


def test_no_rows_are_no_points(tmp_path: Path) -> None:
    assert list(merge_repeats(frame_of(tmp_path, [])))[-3:] == ["runs", "spread", "folders"]


def test_a_table_has_a_line_a_point_and_says_how_far_runs_are_apart(tmp_path: Path) -> None:
    rows = [row(10, started=FIRST), row(20, batch=2, started=FIRST)]
    again = [row(11, sampled=1, started=SECOND, study="other")]
    text = printed(table(frame_of(tmp_path, rows, again)), 200)
    assert "2 points" in text and "runs" in text and str(tmp_path) not in text
    assert "1 point in several folders: the samples of all runs count; their medians differ by 10." in text
    assert "several folders" not in printed(table(frame_of(tmp_path / "single", rows)), 200)


def test_a_report_counts_repeats_and_takes_the_median_of_their_layers(tmp_path: Path) -> None:
    runs = [
        row(10 + number, sampled=number, started=started, layers=[{"name": "conv1", "latency_s": layer_s}])
        for number, (started, layer_s) in enumerate(((FIRST, 1e-3), (SECOND, 9e-3), (THIRD, 3e-3)))
    ]
    folders = [str(write(tmp_path / str(number), [run])) for number, run in enumerate(runs)]
    details = read_details(merge_repeats(read(folders)).reset_index(drop=True))
    assert [layer.latency_s for layer in details.layers[0]] == [3e-3]
    assert details.facts["host.name"] == {"somewhere": 3}
    report(folders, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "1 point with runs in several folders, whose samples count together" in text
