"""The report's figures and tables as files, for papers: SVG, PDF, PNG; Markdown, CSV, LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dlas.face.reporting.blocks import Figure, Section, Table
from dlas.face.reporting.figure_files import sheets, write_figure
from dlas.face.reporting.table_files import write_table


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
            write_figure(spec, folder / "figures" / name)
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Table):
                write_table(block, folder / "tables" / block.name)
