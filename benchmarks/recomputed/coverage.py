"""How many numbers of READMEs are recomputed, and how many are not and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from benchmarks.recomputed.markdown import Table, claims, numbers, tables
from benchmarks.recomputed.studies import readme, recompute

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->")
REASONS = (
    "not refitted: those of predictors that take minutes to fit, and what a name in the same line says",
    "no rows: tables of commands whose rows are not kept, and of benchmarks that time or search anew",
    "not marked: numbers in sentences without a comment, among them settings, sections and citations",
)


@dataclass(frozen=True)
class Coverage:
    """Counts of one README."""

    study: str
    tables: int
    """Tables that are recomputed from kept rows."""
    recomputed: int
    """Numbers in them that are."""
    not_refitted: int
    """The others in them."""
    sentences: int
    """Numbers in sentences that are recomputed."""
    tables_without_rows: int
    without_rows: int
    """Tables of commands whose rows are not kept, and the numbers in them."""
    not_marked: int
    """Numbers in sentences without a comment."""


HEADER = (
    "study",
    "tables recomputed",
    "numbers in them",
    "not refitted",
    "recomputed in sentences",
    "tables without rows",
    "numbers there",
    "not marked",
)


def coverage(study: str) -> Coverage:
    """Return what is recomputed of a README; predictors are fitted for it."""
    text = readme(study).read_text(encoding="utf-8")
    found = list(tables(text))
    own = [table for table in found if table.function]
    lost = [table for table in found if table.command]
    done = sum(_recomputed(study, table) for table in own)
    return Coverage(
        study,
        len(own),
        done,
        sum(map(_written, own)) - done,
        len(list(claims(text))),
        len(lost),
        sum(map(_written, lost)),
        sum(len(numbers(line)) for line in _sentences(text)),
    )


def in_words(found: list[Coverage]) -> str:
    """Return the table of several READMEs, and why numbers are not recomputed."""
    counts = [astuple(each)[1:] for each in found]
    total = "all", *(sum(column) for column in zip(*counts, strict=True))
    lines = [HEADER, ["---"] * len(HEADER), *(astuple(each) for each in found), total]
    told = ["| " + " | ".join(map(_shown, line)) + " |" for line in lines]
    return "\n".join([*told, "", *(f"- {reason}" for reason in REASONS)])


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _recomputed(study: str, table: Table) -> int:
    """Return how many numbers of a table its function tells; a text that is told is all of a cell."""
    return sum(
        len(numbers(cells[column]))
        for cells in table.rows
        for column, value in recompute(study, table.function, cells).items()
        if value is not None
    )


def _written(table: Table) -> int:
    """Return how many numbers a table has, but for those of its first column, which are names."""
    return sum(len(numbers(cell)) for cells in table.rows for cell in list(cells.values())[1:])


def _sentences(text: str) -> Iterator[str]:
    """Yield the lines that are neither code nor a table, without the numbers that a comment follows."""
    for claim in claims(text):
        text = text.replace(claim.text, "")
    for line in COMMENT.sub("", FENCED.sub("", text)).split("\n"):
        if not line.startswith(("|", "#")):
            yield line
