"""Tables as files, for papers."""

from __future__ import annotations

import re
from pathlib import Path

from dlas.face.tables.files import framed, markdown, write_table
from dlas.face.tables.table import Cell, Column, Line, Table

AWKWARD = r"a_b & 50 % | <i>*x*</i> {y} \z"


def table(text: str) -> Table:
    return Table(
        "odd",
        text,
        [Column(text, "group"), Column("n", number=True)],
        [Line([Cell(text, note="note"), Cell("1")])],
    )


def test_markdown_shows_a_text_as_it_is() -> None:
    (line,) = [line for line in markdown(table(AWKWARD)).splitlines() if line.endswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert re.sub(r"\\(.)", r"\1", line) == f"| {AWKWARD} (note) | 1 |"


def test_latex_shows_a_text_as_it_is(tmp_path: Path) -> None:
    write_table(table(AWKWARD), tmp_path / "odd")
    latex = (tmp_path / "odd.tex").read_text()
    assert r"a\_b \& 50 \% | \textless{}i\textgreater{}*x*" in latex and r"\{y\} \textbackslash{}z" in latex
    assert framed(table("plain")).columns.tolist() == ["group: plain", "n"]
