"""Examples: each row is read once, with its network's operators and its program's kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlas
from dlas.prediction.learning.examples import example_of, read_examples
from dlas.prediction.learning.points import Points, points_of, read_points
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.files import FILE
from tests.fixtures.kernel_rows import board, kernel_rows
from tests.fixtures.rows import write
from tests.fixtures.training_rows import training_row, training_rows

TARGET = "latency_s"
PASSES = 2
"""Openings of a file whose rows are read: one finds the last row of each id, one reads those."""


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """Count how often each results file is opened."""
    counts: Counter[Path] = Counter()
    opened: Callable[..., Any] = Path.open

    def counting(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name.startswith(FILE):
            counts[path] += 1
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counting)
    return counts


def fit(folders: list[Path], to: Path) -> None:
    dlas.fit("boosted_kernels", folders, target=TARGET, to=to, hold_out="model", options={"rounds": 2})


def evaluate(folders: list[Path], to: Path) -> None:
    dlas.evaluate(folders, predictors=["additive"], target=TARGET, hold_out="model")


def report(folders: list[Path], to: Path) -> None:
    dlas.report(folders, to.with_suffix(".html"))


def look(folders: list[Path], to: Path) -> None:
    """Read what was measured, as each look of ``fit-device`` does."""
    read_points(folders, TARGET, kernels=True)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "times"), [(fit, 1), (evaluate, 1), (report, 2), (look, 1)])
def test_a_command_reads_the_rows_of_each_folder_once_and_a_report_its_details_too(
    command: Callable[[list[Path], Path], None], times: int, openings: Counter[Path], tmp_path: Path
) -> None:
    folders = [write(tmp_path / name, list(kernel_rows(board("Board", name)))) for name in ("one", "two")]
    openings.clear()
    command([*folders, folders[0]], tmp_path / "p")
    # Details are read of rows that are shown, and so not from folders that hold copies alone.
    assert set(openings) == {folder / FILE for folder in folders}
    assert max(openings.values()) == times * PASSES


def test_predicting_rows_reads_them_once(openings: Counter[Path], tmp_path: Path) -> None:
    folder, predictor = write(tmp_path / "rows", list(training_rows())), tmp_path / "p"
    dlas.fit("additive", folder, target=TARGET, to=predictor)
    for predicted in (
        lambda: dlas.predict(predictor, folder).frame,
        lambda: dlas.predictor(predictor).predict(folder),
    ):
        openings.clear()
        assert len(predicted()) and openings == {folder / FILE: PASSES}


def test_the_last_row_of_a_point_counts_where_it_stands(tmp_path: Path) -> None:
    first, second = (training_row("wide", 0.4, batch) for batch in (2, 8))
    later = replace(first, latency_s=[9.0])
    folder = write(tmp_path / "rows", [first, second, later])
    assert [example.row for example in read_examples([folder])] == [second, later]


def test_an_example_has_the_operators_and_the_kernels_of_its_row(tmp_path: Path) -> None:
    row = next(kernel_rows(board("Board")))
    example = example_of(row, "rows")
    assert example.folder == "rows" and [*example.operators] == [row.batch]
    assert len(example.kernels) == len(row.layers)
    assert all(kernel["latency_s"] for kernel in example.kernels)
    assert not example_of(row, kernels=False).kernels


def test_points_of_one_network_share_its_operators() -> None:
    row = training_row("wide", 0.4, 2)
    known = {row.batch: row.layers}
    points = Points.of([Example(replace(row, seed=seed), known) for seed in (0, 1)])
    first, second = points.facts
    assert first.operators is second.operators and first.network == second.network


def test_points_that_are_read_and_those_of_a_table_are_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path / "rows", list(training_rows()))
    points = Points.of(read_examples([folder]))
    some = dlas.read(folder).iloc[[3, 1]]
    chosen, again = points.take(np.array([3, 1])), points_of(some)
    assert again.frame["network"].tolist() == chosen.frame["network"].tolist()
    assert [own.operators for own in again.facts] == [own.operators for own in chosen.facts]
