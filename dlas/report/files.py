"""The report's figures and tables as files, for papers: SVG, PDF, PNG; Markdown, CSV, LaTeX."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.report import charts
from dlas.report.blocks import Figure, Panel, Section, Table
from dlas.rows.labels import shortened

INK, PAPER = "#1b1f24", "#ffffff"
WIDTH = 320
"""Pixels of a panel without its axis."""
MOST_PANELS = 12
"""On one sheet; a figure of more has several, ``latency-1``, ``latency-2``, ..."""
SCALE = 2
"""Pixels of a PNG for each of the SVG."""


def write_files(sections: Sequence[Section], figures: Sequence[Figure], folder: Path) -> None:
    """Write every figure and table of a report.

    Parameters
    ----------
    sections : sequence of Section
    figures : sequence of Figure
    folder : Path
        Gets ``figures/`` and ``tables/``; files of the same name are replaced.
    """
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for figure in figures:
        for name, spec in sheets(figure):
            _write_figure(spec, folder / "figures" / name)
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table):
                _write_table(block, folder / "tables" / block.name)


# ---------------------------------------------------------------- figures


def sheets(figure: Figure) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and Vega-Lite specification of each of a figure's sheets, data and legend included."""
    panels = figure.panels
    count = -(-len(panels) // MOST_PANELS)
    for number in range(count):
        inside = panels[number * MOST_PANELS : (number + 1) * MOST_PANELS]
        name = figure.name if count == 1 else f"{figure.name}-{number + 1}"
        yield name, _sheet(figure, inside)


def _sheet(figure: Figure, panels: Sequence[Panel]) -> dict[str, Any]:
    drawn = [_drawn(figure, panel) for panel in panels]
    config = charts.theme(INK) | {"background": PAPER}
    sheet = drawn[0] if len(drawn) == 1 else {"concat": drawn, "columns": min(figure.across, len(drawn))}
    found: dict[str, Any] = json.loads(json.dumps(sheet | {"config": config}).replace(charts.INK, INK))
    return found


def _drawn(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Return one panel with its title and data."""
    spec = figure.specs[panel.variant]
    width = WIDTH if len(figure.panels) > 1 else 2 * WIDTH
    title = {"title": shortened(panel.title, 70)} if panel.title else {}
    return {**spec, **title, "width": width, "data": {"values": panel.rows}}


def _write_figure(spec: dict[str, Any], path: Path) -> None:
    import vl_convert

    # A row may hold half a character, which JSON can write and UTF-8 cannot.
    text = json.dumps(spec, ensure_ascii=False).encode("utf-8", "replace").decode()
    svg = vl_convert.vegalite_to_svg(text)
    path.with_name(f"{path.name}.svg").write_text(svg, encoding="utf-8")
    path.with_name(f"{path.name}.pdf").write_bytes(vl_convert.svg_to_pdf(svg))
    path.with_name(f"{path.name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=SCALE))


# ---------------------------------------------------------------- tables


def _write_table(table: Table, path: Path) -> None:
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
    """Return a table's texts; a column under a group is called ``group: header``."""
    headers = [
        f"{column.group}: {column.header}" if column.group else column.header for column in table.columns
    ]
    return pd.DataFrame([[cell.plain for cell in line.cells] for line in table.lines], columns=headers)


def markdown(table: Table) -> str:
    """Return a table as GitHub writes it, its caption above."""
    frame = framed(table)
    rule = ["---:" if column.number else "---" for column in table.columns]
    lines = [
        [_markdown(text) for text in row] for row in [list(frame.columns), rule, *frame.to_numpy().tolist()]
    ]
    lines[1] = rule
    return f"{_markdown(table.caption)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _markdown(text: str) -> str:
    """Return a text that Markdown shows as it is."""
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
    """Return a text that LaTeX sets as it is, with no package but the usual ones."""
    return "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))
