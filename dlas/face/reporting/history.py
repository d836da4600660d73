"""The figure of points over versions, as a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlas.bench.store.replacing import replacing
from dlas.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from dlas.analysis.against.history import VersionHistory
    from dlas.face.reporting.blocks import Figure, Panel

SUFFIXES = (".html", ".json", ".svg", ".pdf", ".png")


def check_figure(to: str | os.PathLike[str] | None) -> None:
    """Refuse a figure of a kind that is not written.

    Raises
    ------
    InputError
    """
    if to is not None and Path(to).suffix.lower() not in SUFFIXES:
        raise InputError(f"`to={str(to)!r}`: a figure is written as *{', *'.join(SUFFIXES)}")


def write_history(found: VersionHistory, path: Path) -> None:
    """Draw the points to which most happened.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from dlas.face.reporting.files import sheets

    ((_, spec),) = sheets(_figure(found))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(_drawn(spec, path.suffix.lower()))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _drawn(spec: dict[str, Any], suffix: str) -> bytes:
    """Return a figure as the content of a file."""
    import altair as alt
    import vl_convert

    # A row may hold half a character, which JSON can write and UTF-8 cannot.
    text = json.dumps({"$schema": alt.SCHEMA_URL, **spec}, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()
    if suffix == ".json":
        return text.encode()
    if suffix == ".html":
        return bytes(vl_convert.vegalite_to_html(text, bundle=True), "utf-8")
    svg = vl_convert.vegalite_to_svg(text)
    if suffix == ".svg":
        return bytes(svg, "utf-8")
    return bytes(vl_convert.svg_to_pdf(svg) if suffix == ".pdf" else vl_convert.svg_to_png(svg, scale=2))


def _figure(found: VersionHistory) -> Figure:
    """Return the figure of the points to which most happened: as many as one sheet holds."""
    from dlas.face.reporting.blocks import Figure
    from dlas.face.reporting.files import MOST_PANELS
    from dlas.face.reporting.palette import SLOTS, rgb

    frame = found.frame()
    machines = sorted(frame["machine"].unique())
    colours = {machine: rgb(*SLOTS[at % len(SLOTS)]) for at, machine in enumerate(machines)}
    varying = [
        axis for axis in frame.columns[1 : frame.columns.get_loc("machine")] if frame[axis].nunique() > 1
    ]
    panels = [_panel(own, varying) for _, own in list(frame.groupby("id", sort=False))[:MOST_PANELS]]
    spec = _chart(colours)
    return Figure("history", "Times over versions", "", panels, {"": spec}, colours)


def _panel(own: pd.DataFrame, varying: Sequence[str]) -> Panel:
    """Return a point's versions on all machines, over the level of the first one of each."""
    from dlas.analysis.against.changes import FASTER, SLOWER
    from dlas.analysis.against.history import OUTLYING, UNCONFIRMED
    from dlas.face.reporting.blocks import Panel

    marks = []
    first: dict[str, float] = {}
    for each in own.to_dict("records"):
        base = first.setdefault(each["machine"], each["level_s"])
        marks.append(
            {
                "x": each["version"],
                "y": each["adjusted_s"] / base,
                "lo": each["adjusted_low_s"] / base,
                "hi": each["adjusted_high_s"] / base,
                "l": each["level_s"] / base,
                "c": each["machine"],
                "e": each["event"] in (SLOWER, FASTER),
                "o": each["event"] in (OUTLYING, UNCONFIRMED),
            }
        )
    title = ", ".join(f"{axis} {own[axis].iloc[0]}" for axis in varying)
    return Panel(title, marks)


def _chart(colours: Mapping[str, str]) -> dict[str, Any]:
    """Return times ``y`` with intervals and levels ``l``, rings where ``e`` and hollow dots where ``o``."""
    import altair as alt

    from dlas.face.reporting.charts import ROWS, specification

    said = "time over that of the first level"
    axis = alt.Axis(tickMinStep=1, format="d")
    across = alt.X("x:Q", title="version", axis=axis, scale=alt.Scale(zero=False, nice=False, padding=12))
    scale = alt.Scale(zero=False, padding=8)
    colour = alt.Color("c:N", title=None, scale=alt.Scale(domain=[*colours], range=[*colours.values()]))
    base = alt.Chart().encode(x=across, color=colour)
    upwards = alt.Y("y:Q", title=said, scale=scale)
    layers = [
        base.mark_rule(opacity=0.35).encode(y=alt.Y("lo:Q", title=said, scale=scale), y2="hi:Q"),
        base.mark_line(strokeWidth=2, interpolate="step-after").encode(
            y=alt.Y("l:Q", title=said), order="x:Q"
        ),
        base.mark_point(filled=True, size=40, opacity=1).encode(y=upwards).transform_filter("!datum.o"),
        base.mark_point(filled=False, size=40, opacity=1).encode(y=upwards).transform_filter("datum.o"),
        base.mark_point(filled=False, size=170, opacity=1, strokeWidth=2)
        .encode(y=upwards)
        .transform_filter("datum.e"),
    ]
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=200))
