"""Tables, comparisons and reports of the rows of studies.

What they return is shown as a table on a terminal and in a notebook, and is a DataFrame as ``.frame``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from dlas.errors import InputError
from dlas.face.tables.view import View, view_of_rows
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.filters import patterns
from dlas.sweep.rows.frame import read_each, select, without_measured


def table(
    rows: Folders | pd.DataFrame,
    *,
    where: str | Sequence[str] = (),
    sort: str = "latency",
    every: bool = False,
) -> View:
    """Return the table of all points, each beside the fastest of its kind.

    Points that were predicted, and not measured since, are among them, marked, and compared with nothing.

    Parameters
    ----------
    rows : path, paths or DataFrame
        Folders that ``dlas run`` wrote, or what :func:`dlas.read` returned.
    where : str or sequence of str
        Keep the rows that match: ``model=cifar_*``, ``compression.level=0.8``, or a condition: ``"algorithm
        == 'gemm' and batch > 1"``.
    sort : str
        ``latency``, ``accuracy``, ``error``, ``memory``, ``size``, ... or an axis.
    every : bool
        Show all lines, also where there are thousands.

    Raises
    ------
    InputError
        If a folder holds no rows, or a filter or ``sort`` names what does not exist.
    """
    from dlas.analysis.repeats import merge_repeats
    from dlas.face.tables.points import MOST_LINES, ordered
    from dlas.face.tables.points import table as grid

    # A filter by status must not hide the row that a prediction gave way to.
    chosen = select(without_measured(_rows(rows, (), guessed=True)), patterns(where))
    lines = ordered(merge_repeats(chosen), sort).drop(columns=["group_number", "bad"])
    shown = grid(chosen, sort=sort, most=None if every else MOST_LINES)
    return view_of_rows(lines.reset_index(drop=True), shown, chosen, where, predictions=True)


def compare(
    rows: Folders | pd.DataFrame,
    axis: str | None = None,
    *,
    against: Folders | None = None,
    baseline: str | None = None,
    where: str | Sequence[str] = (),
    every: bool = False,
) -> View:
    """Compare the values of one axis on matched points, or the same points in two runs.

    Parameters
    ----------
    rows, where
        As for :func:`table`.
    axis : str, optional
        The axis whose values are compared: one of the six layers, ``batch`` or ``seed``.
    against : path or paths, optional
        Folders of an earlier run, in place of an axis; of the same folder, earlier rows of other code.
    baseline : str, optional
        The value that the others are divided by.
    every : bool
        Show all lines, also where there are very many.

    Raises
    ------
    InputError
        If there is no such axis or value, the rows have a single value, or no point is in both runs.
    """
    from dlas.analysis.against.changes import changes_between
    from dlas.analysis.compare import compare as matched
    from dlas.face.tables.changes import grid as changed
    from dlas.face.tables.comparison import grid
    from dlas.face.tables.points import MOST_LINES

    if (axis is None) == (against is None) or (axis is None and baseline is not None):
        raise InputError("give `axis=`, with or without `baseline=`, or `against=`, an earlier run")
    if against is not None:
        changes = changes_between(rows, against, patterns(where))
        return View(changes.frame(), changed(changes, every))
    chosen = _rows(rows, where)
    comparison = matched(chosen, str(axis), baseline)
    return view_of_rows(comparison.frame(), grid(comparison, None if every else MOST_LINES), chosen, where)


def observations(rows: Folders | pd.DataFrame, *, where: str | Sequence[str] = ()) -> View:
    """Check the paper's observations I to XIII; parameters and errors as for :func:`table`."""
    from dlas.analysis.observations import Evidence, findings_frame, observe
    from dlas.analysis.roles import with_roles
    from dlas.face.tables.observations import listing
    from dlas.sweep.rows.results import UNSTABLE

    chosen = _rows(rows, where)
    points = with_roles(chosen)
    findings, unstable = observe(Evidence(points)), int(points["status"].eq(UNSTABLE).sum())
    shown = listing(findings, len(points), unstable)
    return view_of_rows(findings_frame(findings), shown, chosen, where)


def paths(rows: Folders | pd.DataFrame, *, where: str | Sequence[str] = ()) -> View:
    """Return which paths of flexible networks are worth taking, by batch, device, compiler and algorithm.

    Parameters and errors are as for :func:`table`; rows without a path are an error, too.
    """
    from dlas.analysis import paths as analysis
    from dlas.analysis.repeats import merge_repeats
    from dlas.face.tables.paths import listing

    chosen = _rows(rows, where)
    found = analysis.require(merge_repeats(chosen).reset_index(drop=True))
    places = analysis.places(found)
    return view_of_rows(places, listing(places, analysis.changes(found)), chosen, where)


def variability(
    folders: Folders,
    *,
    where: str | Sequence[str] = (),
    target: str = "latency_s",
    by: str = "network",
    every: bool = False,
) -> View:
    """Compare boards alike: how each differs from the others, which stand out, how many see 2 %.

    Parameters
    ----------
    folders
        As for :func:`table`: of several boards, or of several runs on one machine.
    where
        As for :func:`table`.
    target : str
        What boards are compared by: ``latency_s``, ``energy_j`` or ``power_w``.
    by : str
        What they are compared on: each ``network``, or each class of ``kernel``.
    every : bool
        Show all lines, also where there are very many.

    Raises
    ------
    InputError
        If there is no such target, no row has it, the rows are of one board and one folder, or no point
        was measured on every board.
    """
    from dlas.analysis.variability.observed import KERNEL, check, observe
    from dlas.analysis.variability.variability import variability as differences
    from dlas.face.tables.variability import listing

    check(target, by)
    paths = paths_of(folders)
    chosen = _rows(paths, where)
    layers = read_each(paths, layers=True) if by == KERNEL else None
    found = differences(observe(chosen, target, by, layers))
    return view_of_rows(found.frame(), listing(found, every), chosen, where)


def choose(
    folders: Folders,
    *,
    to: str | os.PathLike[str] | None = None,
    where: str | Sequence[str] = (),
    by: str = "latency_s",
) -> View:
    """Write the table for ``per_layer`` that makes a network fastest, and return it with what it gains.

    Parameters
    ----------
    to : path, optional
        The table to write; by default ``choices.toml`` in the first folder.
    where
        As for :func:`table`.
    by : str
        What is least: ``latency_s``, or ``energy_j``.

    Raises
    ------
    InputError
        If there is no such cost, the rows cannot be compared, or the file cannot be written.
    """
    from dlas.face.tables.choices import choose as chosen

    paths = paths_of(folders)
    return chosen(paths, patterns(where), Path(to) if to is not None else paths[0] / "choices.toml", by)


def import_rows(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> pd.DataFrame:
    """Write the rows of a table from elsewhere into a new folder, and return them as :func:`dlas.read` does.

    Parameters
    ----------
    path : path
        A table of measurements, ``*.csv``, ``*.csv.xz`` or ``*.parquet``, with the columns that
        :func:`dlas.export` writes, or some of them: a part that does not exist here is a name, and
        ``machine`` is a column.
    folder : path
        A new folder for the rows; it must not hold any.

    Raises
    ------
    InputError
        If the file is no such table; nothing has been written then.
    """
    from dlas.analysis.importing.rows import import_rows as write

    write(path, folder)
    return read_each(folder)


def report(
    folders: Folders,
    out: str | os.PathLike[str] | None = None,
    *,
    where: str | Sequence[str] = (),
    files: bool = False,
    predictors: Sequence[str | os.PathLike[str]] = (),
) -> Path:
    """Write one HTML page that shows everything, and return its path.

    Parameters
    ----------
    out : path, optional
        The page; by default ``report.html`` in the first folder.
    where
        As for :func:`table`.
    files : bool
        Also write every figure (SVG, PDF, PNG) and table (Markdown, CSV, LaTeX) into ``<page>_files``.
    predictors : sequence of path
        Folders that :func:`dlas.fit` wrote, whose evaluations the page shows.

    Raises
    ------
    InputError
        If a folder holds no rows, a filter names what does not exist, the rows are of two tasks, or a
        file cannot be written.
    """
    from dlas.face.reporting import files_beside
    from dlas.face.reporting import report as write

    paths = paths_of(folders)
    page = Path(out) if out is not None else paths[0] / "report.html"
    write(paths, page, patterns(where), files_beside(page) if files else None, [*map(Path, predictors)])
    return page


def _rows(rows: Folders | pd.DataFrame, where: str | Sequence[str], guessed: bool = False) -> pd.DataFrame:
    """Return the rows that match every filter; of folders, their predictions too where asked for."""
    frame = rows if isinstance(rows, pd.DataFrame) else read_each(rows, predictions=guessed)
    return select(frame, patterns(where))
