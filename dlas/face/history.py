"""``dlas.history``: points over versions as a table and a figure.

It stands beside the rooms, since it needs several, and commands read it without importing any.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dlas.face.tables.view import View
from dlas.sweep.rows.files import Folders
from dlas.sweep.rows.filters import patterns


def history(
    folders: Folders,
    *,
    where: str | Sequence[str] = (),
    to: str | os.PathLike[str] | None = None,
    every: bool = False,
) -> View:
    """Return how the times of points went over versions, and at which of these their level changed.

    Each folder is a version, and so are earlier rows of other code in one folder.  Versions are ordered by
    when they were measured; each machine has its own line.

    Parameters
    ----------
    folders : path or paths
        Folders that ``dlas run`` wrote.
    where : str or sequence of str
        As for :func:`table`.
    to : path, optional
        Draw the points to which most happened into a file: ``*.html``, ``*.json`` (Vega-Lite), ``*.svg``,
        ``*.pdf`` or ``*.png``.
    every : bool
        Show all points, those too whose level never changed.

    Returns
    -------
    View
        Its frame has a line for each point, machine and version.

    Raises
    ------
    InputError
        If a folder holds no rows, a filter names what does not exist, no point has times in two versions on
        one machine, or the file cannot be written.
    """
    from dlas.analysis.against.history import history_in
    from dlas.face.reporting.history import check_figure, write_history
    from dlas.face.tables.history import grid

    check_figure(to)
    found = history_in(folders, patterns(where))
    if to is not None:
        write_history(found, Path(to))
    return View(found.frame(), grid(found, every))
