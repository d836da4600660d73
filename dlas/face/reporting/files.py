"""A report's figures and tables as files, for papers: SVG, PDF, PNG; Markdown, CSV, LaTeX."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Figure, Panel, Section
from dlas.face.tables.files import write_table
from dlas.face.tables.table import Table

INK, PAPER = "#1b1f24", "#ffffff"
WIDTH = 320
"""Pixels of a panel without its axis."""
MOST_PANELS = 12
"""Most panels of a sheet; a figure of more has several sheets, ``latency-1``, ``latency-2``, ..."""
CHARACTER, MOST_LINES = 8, 3
"""Pixels of a character of a title, and most lines of it."""
SCALE = 2
"""Pixels of the PNG per pixel of the SVG."""


def write_files(sections: Sequence[Section], figures: Sequence[Figure], folder: Path) -> None:
    """Write every figure and table of a report.

    Parameters
    ----------
    folder : Path
        Gets ``figures/`` and ``tables/``; files of the same name are replaced.
    """
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for figure in figures:
        for name, spec in sheets(figure):
            write_figure(spec, folder / "figures" / name)
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table):
                write_table(block, folder / "tables" / block.name)


def sheets(figure: Figure) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and Vega-Lite specification of each sheet of a figure, with data and legend."""
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
    spec: dict[str, Any] = json.loads(json.dumps(sheet | {"config": config}).replace(charts.INK, INK))
    return spec


def _drawn(figure: Figure, panel: Panel) -> dict[str, Any]:
    """Return one panel with its title and data."""
    spec = figure.specs[panel.variant]
    width = WIDTH if len(figure.panels) > 1 else 2 * WIDTH
    # A title that is wider than its panel would push the next one away.
    lines = textwrap.wrap(panel.title, width // CHARACTER, max_lines=MOST_LINES, placeholder=" …")
    title = {"title": lines} if lines else {}
    height = charts.height(spec, panel.rows)
    return {**spec, **title, "width": width, "height": height, "data": {"values": panel.rows}}


def write_figure(spec: dict[str, Any], path: Path) -> None:
    """Write a figure as SVG, PDF and PNG, at a path without a suffix."""
    import vl_convert

    # A row may hold half a character, which JSON can write and UTF-8 cannot.
    text = json.dumps(spec, ensure_ascii=False).encode("utf-8", "replace").decode()
    svg = vl_convert.vegalite_to_svg(text)
    path.with_name(f"{path.name}.svg").write_text(svg, encoding="utf-8")
    path.with_name(f"{path.name}.pdf").write_bytes(vl_convert.svg_to_pdf(svg))
    path.with_name(f"{path.name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=SCALE))
