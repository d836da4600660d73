"""The report: one self-contained HTML page, and its figures and tables as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import dlas
from dlas.analysis.details import read_details
from dlas.analysis.frame import read, select
from dlas.analysis.report.blocks import Section
from dlas.analysis.report.context import Context
from dlas.analysis.report.files import write_files
from dlas.analysis.report.page import figures, page
from dlas.analysis.report.sections import SECTIONS
from dlas.analysis.roles import with_roles


def report(
    folders: Sequence[str | os.PathLike[str]],
    out: Path,
    where: Sequence[str] = (),
    files: Path | None = None,
) -> None:
    """Write the report of one folder or of several.

    Parameters
    ----------
    folders : sequence of path
        What ``dlas run --out`` wrote.
    out : Path
        The HTML file.
    where : sequence of str
        Filters, ``axis=pattern``.
    files : Path, optional
        A folder for every figure as SVG, PDF and PNG, and every table as
        Markdown, CSV and LaTeX.

    Raises
    ------
    InputError
        If a folder holds no results, or a filter names what does not exist.
    """
    names = [str(folder) for folder in folders]
    frame = select(read(names), where)
    points = with_roles(frame)
    context = Context(names, points, len(frame) - len(points), read_details(names, points))
    found = [section(context) for section in SECTIONS]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    made = page(context, found, f"Made by dlas {dlas.__version__} on {now}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made, encoding="utf-8")
    if files is not None:
        sections = [section for section in found if isinstance(section, Section)]
        write_files(sections, figures(sections), files)
