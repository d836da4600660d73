"""A terminal prints the table that the page draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import dlas
from dlas.face.reporting import context_of
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import checks, paths
from dlas.face.tables.scores import by_fold, overall
from dlas.face.tables.table import Table
from dlas.face.tables.view import View
from dlas.prediction.learning.metrics import WITHIN, Scores
from dlas.prediction.learning.stored import ScoreRecord
from dlas.sweep.rows.labels import MISSING
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row, write
from tests.fixtures.sweeps import sweep


def observed() -> Iterable[Row]:
    return sweep(models=2, batches=(1,))


def paths_measured() -> Iterable[Row]:
    for batch in (1, 8):
        for number, path in enumerate(("00", "01", "10", "11")):
            leaf = {"name": "leaf", "path": path}
            told: dict[str, Any] = {"accuracy": 0.9 - 0.1 * number, "macs": 100 - number}
            yield row(batch * (20 - 4 * number), batch=batch, compression=leaf, **told)


@pytest.mark.parametrize(
    ("rows", "section", "view"),
    [(observed, checks.section, dlas.observations), (paths_measured, paths.section, dlas.paths)],
)
def test_both_tell_the_same(
    tmp_path: Path,
    rows: Callable[[], Iterable[Row]],
    section: Callable[[Context], Section | Absent],
    view: Callable[[Path], View],
) -> None:
    folder = write(tmp_path, list(rows()))
    shown = section(context_of([folder]))
    assert isinstance(shown, Section)
    tables = [block for block in shown.blocks if isinstance(block, Table)]
    text = str(view(folder))
    assert tables and all(len(table.lines) > 1 for table in tables[:1])
    for table in tables:
        for line in table.lines:
            printed = [own for own in text.split("\n") if all(cell.plain in own for cell in line.cells)]
            assert printed, [cell.plain for cell in line.cells]


def scores(mape: float) -> Scores:
    return Scores(10, mape, (0.5,) * len(WITHIN), 1.0, 1.0, 0.123, None, 0.5, 0.9, 0.02, 0.34)


def test_scores_are_told_alike_of_a_fit_and_of_its_file() -> None:
    fitted = scores(0.0345)
    stored = ScoreRecord(**{**vars(fitted), "within": list(fitted.within)})
    assert overall({"mine": fitted}).lines == overall({"mine": stored}).lines
    (line,) = overall({"mine": fitted}).lines
    assert [cell.text for cell in line.cells] == [
        *("mine", "10", "3.5%", "50%", "50%", "50%", "50%", "12%"),
        *(MISSING, "0.500", "90% ± 2.0%", "34%"),
    ]


def test_the_least_error_of_each_line_is_marked() -> None:
    folds = {"mine": {"a": scores(0.1), "b": scores(0.3)}, "mean": {"a": scores(0.2), "b": scores(0.3)}}
    marked = [[cell.style == "best" for cell in line.cells[2:]] for line in by_fold(folds).lines]
    assert marked == [[True, False], [True, True]]
