"""Write the page: ``dlas atlas FOLDER... --to site``."""

from __future__ import annotations

import os
from pathlib import Path

import markupsafe
import pandas as pd

from dlas.bench.store.replacing import make_folder, replacing
from dlas.errors import InputError, listed
from dlas.face.atlas.columns import COLUMNS
from dlas.face.atlas.data import data_of
from dlas.face.reporting.templates import source, templates
from dlas.sweep.rows.files import Folders, paths_of
from dlas.sweep.rows.frame import DAMAGED, read_each
from dlas.sweep.rows.labels import number_of, rows

FILE = "index.html"
PACKAGE = "dlas.face.atlas"
SCRIPTS = ("rows.js", "selection.js", "filters.js", "table.js", "details.js", "page.js")
"""One script on the page, in this order."""
MOST_NAMED = 3
"""Most folders that a message names."""


def atlas(folders: Folders, *, to: str | os.PathLike[str]) -> Path:
    """Write one HTML page with every row, failures too, to filter and sort; return its path.

    The page needs no network and no other file.  Its filters stand in its address, so that a view can be
    linked, and what they leave can be saved as CSV.

    Parameters
    ----------
    folders : path or paths
        Folders that ``dlas run`` wrote.
    to : path
        A folder for the page, ``index.html``; an earlier one is replaced.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        If a folder holds no results, there is no row at all, or the page cannot be written.
    """
    place, paths = Path(to), paths_of(folders)
    if place.is_file():
        raise InputError(f"`to={str(to)!r}` is a file: give a folder for the page {FILE}")
    frame = read_each(paths)
    if frame.empty:
        raise InputError(f"no rows in {listed([repr(str(path)) for path in paths], MOST_NAMED)}")
    make_folder(place, "page's folder")
    text = page(frame)
    try:
        with replacing(place / FILE) as partial:
            # A row may hold half a character, which JSON can write and UTF-8 cannot.
            partial.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"cannot write {str(place / FILE)!r}: {error.strerror or error}") from None
    return place / FILE


def page(frame: pd.DataFrame) -> str:
    """Return the page of rows as HTML.

    Parameters
    ----------
    frame : DataFrame
        What :func:`dlas.read` returned.
    """
    environment = templates(PACKAGE, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {
        "allow_nan": False,
        "ensure_ascii": False,
        "separators": (",", ":"),
    }
    styles = source("dlas.face.reporting", "page.css") + source(PACKAGE, "atlas.css")
    return environment.get_template("page.html.jinja").render(
        counted=rows(len(frame)),
        about=_about(frame),
        columns=COLUMNS,
        css=markupsafe.Markup(styles),
        js=markupsafe.Markup("\n".join(source(PACKAGE, name) for name in SCRIPTS)),
        data=data_of(frame),
    )


def _about(frame: pd.DataFrame) -> str:
    """Return in a sentence of how many studies and machines the rows are, and which were left out."""
    studies, machines = frame["study"].nunique(), frame["machine"].nunique()
    told = f"Of {studies:,} {'study' if studies == 1 else 'studies'}, on {number_of(machines, 'machine')}."
    damaged = frame.attrs.get(DAMAGED, 0)
    return f"{told} {number_of(damaged, 'damaged line')} left out." if damaged else told
