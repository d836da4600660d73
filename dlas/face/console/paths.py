"""Paths of flexible networks as text: Pareto sets, what changes them, and multiply-adds against latency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from dlas.analysis.paths import CHANGED, PLACE, numbers, sets, text
from dlas.face.console.cells import GridCell, GridColumn, names
from dlas.face.console.grid import Grid
from dlas.sweep.rows.labels import MISSING

KEEP = "a set is what `keep` of the compression leaf takes"


def listing(places: pd.DataFrame, changed: pd.DataFrame) -> RenderableType:
    """Return the Pareto set of each place, and below it which paths enter and leave it between places.

    Parameters
    ----------
    places, changed : DataFrame
        What :func:`dlas.analysis.paths.places` and :func:`dlas.analysis.paths.changes` returned.
    """
    pieces: list[RenderableType] = [_grid(places)]
    varying = _varying(places)
    for along in CHANGED:
        lines = changed[changed["along"] == along].to_dict("records")
        if lines:
            pieces += [Text(), Text(f"along {along}", style="bold")]
            pieces += [Padding(Text(in_words(line, varying)), (0, 0, 0, 2), expand=False) for line in lines]
    return Group(*pieces)


def in_words(change: Mapping[Any, Any], varying: Sequence[str] = ()) -> str:
    """Return what changes between two neighbouring places, as a sentence after what both have in common.

    Parameters
    ----------
    change : mapping
        A line of :func:`dlas.analysis.paths.changes`.
    varying : sequence of str
        Columns of a place that have several values.
    """
    said = [
        f"{text(change[verb])} {verb}{'s' if len(change[verb]) == 1 else ''}"
        for verb in ("enter", "leave")
        if change[verb]
    ]
    if not said:
        said.append("the same set as far as intervals tell")
    if change["open"]:
        said.append(f"{change['open']} open")
    common = [_called(name, change[name]) for name in varying if change[name] is not None]
    where = f"{', '.join(common)}: " if common else ""
    return f"{where}{change['first']} to {change['second']}: {', '.join(said)}"


def _varying(places: pd.DataFrame) -> list[str]:
    return [name for name in PLACE if places[name].nunique(dropna=False) > 1]


def _called(name: str, value: Any) -> str:
    return f"{name} {value}" if name in ("batch", "seed") else _shown(value)


def _grid(places: pd.DataFrame) -> Grid:
    """Return a line a place; columns that are equal in all places are above it."""
    varying = _varying(places)
    same = [f"{name} {places[name].iloc[0]}" for name in PLACE if name not in varying and name != "task"]
    columns = [names(name, [_shown(value) for value in places[name]], shared=True) for name in varying]
    lines = places.to_dict("records")
    columns += [
        _numbers("paths", [str(count) for count in places["paths"]]),
        *(names(header, texts) for header, texts in _columns(map(sets, lines))),
        *(_numbers(header, texts) for header, texts in _columns(map(numbers, lines))),
    ]
    above = [Text(f"{len(places)} place{'' if len(places) == 1 else 's'}; {', '.join(same)}; {KEEP}")]
    return Grid(columns, above=above)


def _numbers(header: str, texts: list[str]) -> GridColumn:
    return GridColumn(GridCell(header), [GridCell(each) for each in texts])


def _shown(value: Any) -> str:
    return MISSING if pd.isna(value) else str(value)


def _columns(lines: Iterable[dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the header of each column with its texts."""
    frame = pd.DataFrame(lines)
    yield from ((str(header), list(texts)) for header, texts in frame.items())
