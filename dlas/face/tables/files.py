"""Tables as files, for papers: Markdown, CSV and LaTeX."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dlas.face.tables.table import Table


def write_table(table: Table, path: Path) -> None:
    """Write a table as CSV, Markdown and LaTeX, at a path without a suffix."""
    frame = framed(table)
    escaped = frame.map(_latex).rename(columns=_latex)
    styled = escaped.to_latex(
        index=False,
        escape=False,
        column_format=_alignment(table),
        caption=_latex(table.caption),
        label=f"tab:{table.name}",
    )
    for kind, text in (("csv", frame.to_csv(index=False)), ("md", markdown(table)), ("tex", styled)):
        path.with_name(f"{path.name}.{kind}").write_text(text, encoding="utf-8", errors="replace")


def framed(table: Table) -> pd.DataFrame:
    """Return a table's texts; a column under a group is named ``group: header``."""
    headers = [
        f"{column.group}: {column.header}" if column.group else column.header for column in table.columns
    ]
    return pd.DataFrame([[cell.plain for cell in line.cells] for line in table.lines], columns=headers)


def markdown(table: Table) -> str:
    """Return a table in GitHub's Markdown, below its caption."""
    frame = framed(table)
    rule = ["---:" if column.number else "---" for column in table.columns]
    lines = [
        [_markdown(text) for text in row] for row in [list(frame.columns), rule, *frame.to_numpy().tolist()]
    ]
    lines[1] = rule
    return f"{_markdown(table.caption)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown(text: str) -> str:
    """Return a text escaped for Markdown."""
    escaped = "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~" else letter for letter in text)
    return " ".join(escaped.split())


def _alignment(table: Table) -> str:
    return "".join("r" if column.number else "p{5cm}" if column.wide else "l" for column in table.columns)


LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "µ": r"\textmu{}",
    "✕": r"$\times$",
    "↔": r"$\leftrightarrow$",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "“": "``",
    "”": "''",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{EN DASH}": "--",
}


def _latex(text: str) -> str:
    """Return a text escaped for LaTeX without uncommon packages."""
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))
