"""The numbers in READMEs follow from the rows that are kept beside them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.recomputed import __main__ as rewriting
from benchmarks.recomputed import coverage
from benchmarks.recomputed.kept import SLOW
from benchmarks.recomputed.markdown import Table, agrees, claims, numbers, rounds, tables
from benchmarks.recomputed.studies import FRONT_PAGE, function_of, pages, readme, recompute, studies

STUDIES = studies()
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]
"""Fitting predictors takes minutes where other tests run beside."""


def recomputed(study: str) -> list[Table]:
    return [table for table in tables(readme(study).read_text()) if table.function]


def fast(study: str) -> Table | None:
    """Return the table of a study that every test run recomputes."""
    quick = (table for table in recomputed(study) if function_of(study, table.function) not in SLOW)
    return next(quick, None)


def wrong_cells(study: str, table: Table) -> list[str]:
    """Return the cells that say something else than the rows."""
    return [
        f"{column!r} of {list(cells.values())[:2]}: {cells[column]!r}, recomputed {value}"
        for cells in table.rows
        for column, value in recompute(study, table.function, cells).items()
        if not agrees(cells[column], value)
    ]


def wrong_claims(study: str) -> list[str]:
    """Return the marked numbers in sentences that say something else than the rows."""
    return [
        f"{claim.written} of {claim.function}{claim.words}: recomputed {value}"
        for claim in claims(readme(study).read_text())
        if not rounds(claim.written, value := recompute(study, claim.function, *claim.words))
    ]


def marked(study: str, table: Table) -> Any:
    marks = [] if table == fast(study) else LONG
    return pytest.param(study, table, id=f"{study}-{table.function}", marks=marks)


@pytest.mark.parametrize(
    ("study", "table"), [marked(study, table) for study in STUDIES for table in recomputed(study)]
)
def test_every_number_of_a_table_follows_from_the_rows(study: str, table: Table) -> None:
    assert wrong_cells(study, table) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("study", [*STUDIES, FRONT_PAGE, *pages()])
def test_numbers_in_sentences_follow_from_the_rows(study: str) -> None:
    assert wrong_claims(study) == []


@pytest.mark.parametrize("study", STUDIES)
def test_every_table_with_numbers_says_where_they_come_from(study: str) -> None:
    text = readme(study).read_text()
    silent = [table.line for table in tables(text) if not table.told and _has_numbers(table)]
    assert not silent, f"tables at lines {silent} of {study} have no comment that names their source"


def _has_numbers(table: Table) -> bool:
    return any(numbers(cell) for row in table.rows for cell in row.values())


def test_numbers_are_counted_with_why_they_are_not_recomputed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "README.md"
    lost = "<!-- measured: dlas run made -->\n| network | speed |\n|---|---|\n| a | 1 to 2 |\n"
    page.write_text(f"{MADE}\n{lost}\n```\ncode 7\n```\n")
    made = SimpleNamespace(speeds=lambda cells: {"speed": 1.26}, speed=lambda name: 1.26)
    monkeypatch.setitem(sys.modules, "benchmarks.recomputed.made", made)
    monkeypatch.setattr(coverage, "readme", lambda study: page)
    found = coverage.coverage("made")
    assert found == coverage.Coverage("made", 1, 1, 2, 1, 1, 2, 0)
    rewriting.main(["--count", "made"])
    told = capsys.readouterr().out
    assert "| made | 1 | 1 | 2 | 1 | 1 | 2 | 0 |" in told and "| all | 1 |" in told
    assert all(reason in told for reason in coverage.REASONS)


MADE = """<!-- = speeds -->
| network | speed |  |
|---|---|---|
| a | **1.27** times | 3,001 of 4 |
| b |  |  |

Twice 1.26<!-- = speed(a) --> is not said.
"""


def test_a_wrong_number_is_found_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {"a": {"speed": 1.2649, "": [3000.6, 4]}, "b": {"speed": None, "": None}}
    made = SimpleNamespace(speeds=lambda cells: speeds[cells["network"]], speed=lambda name: 1.2649)
    monkeypatch.setitem(sys.modules, "benchmarks.recomputed.made", made)
    page = tmp_path / "README.md"
    page.write_text(MADE)
    monkeypatch.setattr(sys.modules[__name__], "readme", lambda study: page)
    monkeypatch.setattr(rewriting, "readme", lambda study: page)

    (table,) = recomputed("made")
    assert wrong_cells("made", table) == [
        "'speed' of ['a', '**1.27** times']: '**1.27** times', recomputed 1.2649"
    ]
    page.write_text(MADE.replace("1.27", "1.26").replace("Twice 1.26", "Twice 1.3"))
    assert wrong_claims("made") == []
    page.write_text(MADE.replace("Twice 1.26", "Twice 1.25"))
    assert wrong_claims("made") == ["1.25 of speed('a',): recomputed 1.2649"]

    rewriting.main(["made"])

    assert page.read_text() == MADE.replace("1.27", "1.26")
    assert (
        wrong_claims("made")
        == [cell for table in recomputed("made") for cell in wrong_cells("made", table)]
        == []
    )
