"""Tables as text: nothing is cut off, whatever the width, and sentences wrap between words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlas.face.tables.columns import names, numbers, table_of
from dlas.face.tables.table import Cell, Column, Line, Table
from dlas.face.tables.text import Grid, titled
from tests.fixtures.printing import printed

WORDS = st.lists(st.sampled_from(["alpha", "beta", "gamma(x=1)", "delta"]), min_size=1, max_size=12)
COLUMNS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.integers(0, 2)).map(
        lambda kind: Column("header", "group", number=kind[0], wide=kind[1] and not kind[0])
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(st.data(), COLUMNS, st.integers(1, 4), st.sampled_from([40, 80, 300]))
def test_every_cell_is_printed_and_no_line_is_too_wide(
    data: st.DataObject, columns: list[Column], count: int, width: int
) -> None:
    texts = [[f"{line}{at}z" for at in range(len(columns))] for line in range(count)]
    sentences = [[" ".join([text, *data.draw(WORDS)]) for text in line] for line in texts]
    cells = [
        [Cell(long if column.wide else text) for column, text, long in zip(columns, line, own, strict=True)]
        for line, own in zip(texts, sentences, strict=True)
    ]
    shown = printed(Grid(Table("t", "", columns, [Line(line) for line in cells])), width, terminal=True)
    assert all(text in shown for line in texts for text in line)
    assert max(map(len, shown.split("\n"))) <= width


def verdicts() -> Grid:
    statement = "Larger networks are not reliably more accurate than smaller ones."
    lines = [
        Line([Cell("I", style="head"), Cell(statement), Cell("")]),
        Line([Cell(""), Cell("a claim"), Cell("in 1 of 3 pairs of models", note="missing: more pairs")]),
    ]
    columns = [Column("no."), Column("observation", wide=True), Column("numbers", wide=True)]
    return titled(Table("observations", "What holds", columns, lines))


def test_a_sentence_runs_on_over_columns_that_are_empty() -> None:
    lines = printed(verdicts(), 200).split("\n")
    assert lines[0] == "What holds"
    assert lines[-3].split("  ")[-1] == "Larger networks are not reliably more accurate than smaller ones."
    # The claim's numbers stand beside the claim, not beside the end of the statement above it.
    assert lines[-2] == "     a claim      in 1 of 3 pairs of models (missing: more pairs)"


def test_sentences_wrap_between_words() -> None:
    lines = printed(verdicts(), 60, terminal=True).split("\n")
    assert max(map(len, lines)) <= 60
    assert "I    Larger networks are not reliably more accurate than" in lines
    assert " ".join(" ".join(lines).split()).endswith("in 1 of 3 pairs of models (missing: more pairs)")


def test_a_group_stands_once_above_its_columns() -> None:
    strips = [names("winner", ["a"]), *(numbers(name, ["1.5"], "latency, ms") for name in ("high", "low"))]
    head, below = printed(Grid(table_of(strips)), 80).split("\n")[1:3]
    assert head.split() == ["latency,", "ms"] and below.split() == ["winner", "high", "low"]
    assert head.index("ms") + 2 == below.index("high") + 4, "a group ends where its first column does"


@pytest.mark.parametrize(("width", "expected"), [(80, []), (26, ["narrow"]), (18, ["narrow", "wide one"])])
def test_the_least_important_columns_are_left_out_and_named(width: int, expected: list[str]) -> None:
    strips = [names("name", ["a"]), numbers("kept", ["1"])]
    strips += [numbers("wide one", ["1"], drop=1), numbers("narrow", ["1"], drop=2)]
    shown = " ".join(printed(Grid(table_of(strips)), width, terminal=True).split())
    assert shown.endswith(f"left out for want of width: {', '.join(expected)}") == bool(expected)
