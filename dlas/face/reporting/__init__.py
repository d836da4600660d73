"""The report: one self-contained HTML page, and its figures and tables as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from dlas.analysis.roles import with_roles
from dlas.bench.store.fingerprint import version
from dlas.bench.store.replacing import replacing
from dlas.errors import InputError
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.data import figures
from dlas.face.reporting.fewer import fewer
from dlas.face.reporting.files import write_files
from dlas.face.reporting.page import page
from dlas.face.reporting.sections import SECTIONS
from dlas.prediction.learning import stored
from dlas.stack import TASKS
from dlas.sweep.rows.details import read_details
from dlas.sweep.rows.frame import DAMAGED, distinct, read_each, select, without_measured
from dlas.sweep.rows.missing import told
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.rows.short_labels import with_short_labels

SUFFIXES = (".html", ".htm")
FIGURES = "`files=True` writes its figures as PDF, SVG and PNG, and its tables as Markdown, CSV and LaTeX"


def report(
    folders: Sequence[str | os.PathLike[str]],
    out: Path,
    where: Sequence[str] = (),
    files: Path | None = None,
    predictors: Sequence[Path] = (),
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
    predictors : sequence of Path
        Folders that ``dlas fit`` wrote, whose evaluations are shown.

    Raises
    ------
    InputError
        If ``out`` is no HTML file, a folder holds no results, a filter names what
        does not exist, the rows are of two tasks, or a file cannot be written.
    """
    if out.suffix.lower() not in SUFFIXES:
        raise InputError(f"cannot write {str(out)!r}: the report is one HTML page (*.html); {FIGURES}")
    sections_or_gaps, html = rendered(context_of(folders, where, predictors))
    try:
        _write(html, out)
        if files is not None:
            sections = [section for section in sections_or_gaps if isinstance(section, Section)]
            write_files(sections, figures(sections), files)
    except OSError as error:
        raise InputError(f"cannot write {error.filename or str(out)!r}: {error.strerror or error}") from None


def rendered(context: Context, number: int | None = None) -> tuple[list[Section | Absent], str]:
    """Return the sections of a report and its page.

    Parameters
    ----------
    number : int, optional
        Of a page that asks where it comes from for one with another number.
    """
    sections_or_gaps = [section(context) for section in SECTIONS]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    made = f"Made by dlas {version('dlas') or 'unknown'} on {now}."
    return sections_or_gaps, page(context, sections_or_gaps, made, number)


def files_beside(page: Path) -> Path:
    """Return the folder for the figures and tables of a page."""
    return page.with_name(f"{page.stem}_files")


def context_of(
    folders: Sequence[str | os.PathLike[str]], where: Sequence[str] = (), predictors: Sequence[Path] = ()
) -> Context:
    """Return what the sections of the report show; parameters and errors as for :func:`report`."""
    known = [stored.read(folder) for folder in predictors]
    names = [str(folder) for folder in distinct(folders)]
    every = read_each(names, predictions=True)
    frame = select(without_measured(every), where)
    missing = told(frame, bool(where), predictions=True)
    if frame["task"].nunique() > 1:
        raise InputError(
            "the rows are of two tasks, which one page does not show side by side; choose one with "
            + " or ".join(f'`where="task={task}"`' for task in TASKS)
        )
    # What was predicted has a section of its own: no other may take it for measured.
    guesses = frame["status"].eq(PREDICTED)
    predicted, frame = frame[guesses], frame[~guesses]
    frame, left_aside = fewer(frame)
    points, abbreviations = with_short_labels(with_roles(frame))
    return Context(
        names,
        points,
        left_out=len(frame) - int(points["runs"].sum()),
        damaged=every.attrs.get(DAMAGED, 0),
        # Only of what is shown: layers are most of a row's size.
        details=read_details(points),
        abbreviations=abbreviations,
        fewer=left_aside,
        predictors=known,
        missing=missing,
        predictions=predicted,
        rows=frame,
    )


def _write(page: str, out: Path) -> None:
    """Replace the page in one step, so that no reader sees an incomplete page."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as partial:
        # A row may hold half a character, which JSON can write and UTF-8 cannot.
        partial.write_text(page, encoding="utf-8", errors="replace")
