"""Vega-Lite specifications of the report's figures, without data and without colours of the page.

Every chart reads the data ``rows``.  A mark shows one row of it:

====== ==========================================================
``p``  line of the frame, for a click
``t``  text of its tooltip, besides the point's
``x``  the quantity, with its interval ``lo`` and ``hi``
``y``  category down the side, or a second quantity
``c``  label of the colour
====== ==========================================================

The docstring of a chart names the other columns that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

ROWS = "rows"
INK = "currentColor"
"""On the page, everything but the marks has the colour of text, in light and dark mode."""
GOLD = "#b8860b"
BAND, LINE = 11, 24
"""Pixels of a mark where several share a category, and of a category with one mark."""
GAP = 1.2
"""A category's height over that of its marks, where several share it."""
LONG, TEXT = 26, 13
"""Characters of the longest label on one line, and pixels of a line of text."""
BROKEN = (
    f"length(datum.label) <= {LONG} ? datum.label : indexof(datum.label, ' · ') >= 0"
    " ? split(replace(datum.label, ' · ', '\\n· '), '\\n') : split(replace(datum.label, '(', '\\n('), '\\n')"
)
"""Vega expression that breaks a long label in two, between parts or before a part's options."""
STEPS = (1, 1.5, 2, 3, 5, 7)
TICKS = [round(digit * 10.0**power, 9) for power in range(-6, 10) for digit in STEPS]
"""Where a logarithmic axis may have ticks."""


def theme(ink: str = INK) -> dict[str, Any]:
    """Return the configuration of all figures.

    Parameters
    ----------
    ink : str
        Colour of axes and text.
    """
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
    return {
        "background": None,
        "font": font,
        "view": {"stroke": None},
        "axis": {
            "domainColor": ink,
            "domainOpacity": 0.35,
            "tickColor": ink,
            "tickOpacity": 0.35,
            "gridColor": ink,
            "gridOpacity": 0.1,
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelOverlap": "greedy",
            "labelSeparation": 6,
        },
        # Labels within these pixels of an end do not stick out.
        "axisX": {"labelFlush": 14},
        "axisY": {"labelLimit": 230, "labelLineHeight": 11, "labelFontSize": 11},
        "text": {"color": ink, "fontSize": 11},
        "rule": {"color": ink},
        "title": {"color": ink, "fontSize": 13, "anchor": "start"},
        "legend": {"labelColor": ink, "labelLimit": 260, "symbolOpacity": 1, "symbolType": "circle"},
    }


def specification(chart: alt.Chart | alt.LayerChart | alt.FacetChart) -> dict[str, Any]:
    """Return a chart as a mapping, without what the page or the file adds."""
    # Data stay inside their chart, so that charts can be concatenated.
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict()
    for name in ("$schema", "config"):
        spec.pop(name, None)
    return spec


def stacked(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a panel's rows with ``k``, their places in a category: one below the other, in its middle."""
    sizes = Counter(row["y"] for row in rows)
    most, seen = max(sizes.values(), default=0), Counter[str]()
    places = []
    for row in rows:
        places.append((most - sizes[row["y"]]) // 2 + seen[row["y"]])
        seen[row["y"]] += 1
    return [{**row, "k": place} for row, place in zip(rows, places, strict=True)]


def height(spec: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the pixels of a panel: enough for its marks, and for its categories' labels of one or two lines.

    The page's script computes the same for the rows that pass its filters.
    """
    given = spec["height"]
    if isinstance(given, int | float):
        return float(given)
    labels = {str(row["y"]) for row in rows}
    apart = "k" if any("k" in row for row in rows) else "c"
    across = len({row[apart] for row in rows}) * GAP if given.get("for") == "offset" else 1
    text = TEXT * (2 if any(len(label) > LONG for label in labels) else 1) + 2
    return float(max(text, given["step"] * across) * len(labels))


def intervals(
    quantity: str,
    colours: Mapping[str, str],
    *,
    logarithmic: bool,
    reference: float | None = None,
    grouped: bool = True,
    domain: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """Return dots with intervals, a line for each category.

    ``s`` is the status of a point without the quantity, ``n`` whether its mark
    is hollow, and ``k`` its place within the category, by :func:`stacked`.

    Parameters
    ----------
    quantity : str
        Title of the x axis, with its unit.
    colours : mapping of str to str
        By label.
    reference : float, optional
        Where a vertical line marks "no difference".
    grouped : bool
        Whether a category has several lines.
    domain : pair of float, optional
        Ends of the x axis.
    """
    axis, scale = _quantitative(logarithmic, domain=domain)
    base = _base("k" if grouped else "")
    colour = _colour(colours)
    x = alt.X("x:Q", title=quantity, scale=scale, axis=axis)
    layers = [
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(
            x=alt.X("lo:Q", title=quantity), x2="hi:Q", color=colour
        ),
        base.mark_point(size=55, filled=True, opacity=1, strokeWidth=1.5).encode(
            x=x,
            color=colour,
            stroke=colour,
            fillOpacity=alt.condition("datum.n", alt.value(0.15), alt.value(1)),
        ),
        base.mark_text(align="left", fontSize=10, opacity=0.75).encode(x=alt.value(3), text="s:N"),
    ]
    if reference is not None:
        layers.insert(0, _reference(reference))
    chart = alt.layer(*layers, data=alt.NamedData(name=ROWS))
    step = alt.Step(BAND, **{"for": "offset"}) if grouped else alt.Step(LINE)
    return specification(chart.properties(height=step))


def boxes(quantity: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Return boxes from ``q1`` to ``q3`` with the median ``x``, and lines from ``lo`` to ``hi``, by category.

    A vertical line at 0 marks "no difference".
    """
    base, colour = _base("c"), _colour(colours)
    axis = alt.Axis(format="+~g", tickCount=6)
    scale = alt.Scale(zero=False, padding=10)
    layers = [
        _reference(0),
        base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
            x=alt.X("lo:Q", title=quantity, axis=axis, scale=scale), x2="hi:Q", color=colour
        ),
        base.mark_bar(height={"band": 0.8}, opacity=0.55).encode(
            x=alt.X("q1:Q", title=quantity), x2="q3:Q", color=colour
        ),
        base.mark_tick(thickness=2, color=INK).encode(x=alt.X("x:Q", title=quantity)),
    ]
    chart = alt.layer(*layers, data=alt.NamedData(name=ROWS))
    return specification(chart.properties(height=alt.Step(BAND, **{"for": "offset"})))


def dumbbells(quantity: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Return expected (``e``, hollow) and achieved values (``x``), with the ``share`` achieved as text."""
    # The share above a dot is wider than the dot.
    scale = alt.Scale(type="log", nice=False, padding=24)
    base = _base()
    colour = _colour(colours)
    axis = alt.Axis(values=TICKS, format="~g")
    layers = [
        _reference(1),
        base.mark_rule(strokeWidth=2, opacity=0.35).encode(
            x=alt.X("x:Q", title=quantity), x2="e:Q", color=colour
        ),
        base.mark_rule(strokeWidth=5, opacity=0.5).encode(x="lo:Q", x2="hi:Q", color=colour),
        base.mark_point(size=70, filled=False, shape="diamond", strokeWidth=2).encode(x="e:Q", color=colour),
        base.mark_point(size=60, filled=True, opacity=1).encode(
            x=alt.X("x:Q", title=quantity, scale=scale, axis=axis), color=colour
        ),
        base.mark_text(dy=-9, fontSize=10).encode(x="x:Q", text="share:N"),
        base.mark_text(align="left", fontSize=10, opacity=0.75).encode(x=alt.value(3), text="s:N"),
    ]
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=alt.Step(34)))


def scatter(
    x: str, y: str, colours: Mapping[str, str], *, logarithmic: bool, labelled: bool = False
) -> dict[str, Any]:
    """Return points over two quantities; those with ``f`` are large and joined by a line at ``fy``.

    Parameters
    ----------
    x, y : str
        Titles of the axes, with their units.
    colours : mapping of str to str
        By label.
    logarithmic : bool
        Whether the x axis is.
    labelled : bool
        Whether dots have their interval from ``lo`` to ``hi`` and the text ``l`` above them.
    """
    axis, scale = _quantitative(logarithmic, zero=False)
    base = alt.Chart()
    ordinate = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(tickCount=5))
    abscissa = alt.X("x:Q", title=x, scale=scale, axis=axis)
    dots = base.mark_point(filled=True, strokeWidth=1.5).encode(
        x=abscissa,
        y=ordinate,
        color=_colour(colours),
        size=alt.condition("datum.f", alt.value(110), alt.value(45)),
        opacity=alt.condition("datum.f", alt.value(1), alt.value(0.55)),
    )
    # Points to the right of and below the step line are dominated.
    line = base.mark_line(
        interpolate="step-after", strokeWidth=1.5, opacity=0.45, color=INK, invalid="filter"
    ).encode(x=abscissa, y=alt.Y("fy:Q", title=y), order="x:Q")
    layers = [line, dots]
    if labelled:
        rule = base.mark_rule(strokeWidth=2, opacity=0.6)
        layers.insert(1, rule.encode(x=alt.X("lo:Q", title=x), x2="hi:Q", y=ordinate, color=_colour(colours)))
        layers.append(base.mark_text(dy=-10, fontSize=10).encode(x=abscissa, y=ordinate, text="l:N"))
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=230))


def agreement(quantity: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Return predicted over measured values on logarithmic axes, with the line on which they are equal."""
    scale = alt.Scale(type="log", nice=False, padding=10)
    axis = alt.Axis(format="~s", tickCount=5)
    base = alt.Chart().transform_calculate(e="datum.x")
    dots = base.mark_point(filled=True, size=45, opacity=0.7).encode(
        x=alt.X("x:Q", title=f"measured {quantity}", scale=scale, axis=axis),
        y=alt.Y("y:Q", title=f"predicted {quantity}", scale=scale, axis=axis),
        color=_colour(colours),
    )
    equal = base.mark_line(strokeDash=[4, 3], opacity=0.5, color=INK).encode(x="x:Q", y="e:Q", order="x:Q")
    return specification(alt.layer(equal, dots, data=alt.NamedData(name=ROWS)).properties(height=300))


def lines(x: str, y: str, colours: Mapping[str, str], *, step: bool = False) -> dict[str, Any]:
    """Return a line with dots for each ``d``."""
    base = alt.Chart()
    encoding = {
        "x": alt.X("x:Q", title=x, scale=alt.Scale(zero=True, nice=False), axis=alt.Axis(tickCount=6)),
        "y": alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(tickCount=5)),
        "color": _colour(colours),
    }
    line = base.mark_line(strokeWidth=2, interpolate="step-after" if step else "linear").encode(
        **encoding, order="x:Q", detail="d:N"
    )
    layers = [line, base.mark_point(filled=True, size=40, opacity=1).encode(**encoding)]
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=230))


def falling(x: str, y: str, colours: Mapping[str, str], least: float) -> dict[str, Any]:
    """Return a line for each ``d`` with intervals, a dashed one of ``b``, and rings where ``e`` is true.

    Parameters
    ----------
    least : float
        Lower end of the y axis, so that panels can be compared; the upper one is 100.
    """
    colour = _colour(colours)
    scale = alt.Scale(domain=[least, 100], zero=False)

    def up(name: str) -> alt.Y:
        return alt.Y(f"{name}:Q", title=y, scale=scale, axis=alt.Axis(tickCount=5))

    axis = alt.Axis(tickCount=6)
    across = alt.X("x:Q", title=x, scale=alt.Scale(domain=[0, 100], nice=False), axis=axis)
    base = alt.Chart().encode(x=across, color=colour)
    layers = [
        base.mark_line(strokeWidth=1, strokeDash=[3, 3], opacity=0.7).encode(
            y=up("b"), order="x:Q", detail="d:N"
        ),
        base.mark_rule(opacity=0.35).encode(y=up("lo"), y2="hi:Q"),
        base.mark_line(strokeWidth=2).encode(y=up("y"), order="x:Q", detail="d:N"),
        base.mark_point(filled=True, size=40, opacity=1).encode(y=up("y")),
        base.mark_point(filled=False, size=170, opacity=1, strokeWidth=2)
        .encode(y=up("y"))
        .transform_filter("datum.e"),
    ]
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=230))


def rising(x: str, y: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Return a line for each ``d`` with intervals, on a logarithmic y axis, and rings where ``e`` is true.

    A horizontal line at 1 marks "no difference".
    """
    scale = alt.Scale(type="log", nice=False, padding=12)
    axis = alt.Axis(values=TICKS, format="~g")
    across = alt.X("x:Q", title=x, scale=alt.Scale(zero=False, nice=False, padding=10))
    base = alt.Chart().encode(x=across, color=_colour(colours))
    upwards = alt.Y("y:Q", title=y, scale=scale, axis=axis)
    ring = base.mark_point(filled=False, size=150, opacity=1, strokeWidth=2)
    interval = base.mark_rule(opacity=0.35).encode(y=alt.Y("lo:Q", title=y), y2="hi:Q")
    layers = [
        _reference(1, upright=False),
        interval.transform_filter("!datum.e"),
        base.mark_line(strokeWidth=2).encode(y=upwards, order="x:Q", detail="d:N"),
        base.mark_point(filled=True, size=40, opacity=1).encode(y=upwards).transform_filter("!datum.e"),
        ring.encode(y=upwards).transform_filter("datum.e"),
    ]
    return specification(alt.layer(*layers, data=alt.NamedData(name=ROWS)).properties(height=230))


def bars(
    quantity: str,
    colours: Mapping[str, str],
    *,
    share: bool = False,
    grouped: bool = False,
    percent: bool = False,
) -> dict[str, Any]:
    """Return bars for each category, stacked by colour in the order ``o``, or one below the other.

    Parameters
    ----------
    quantity : str
        Title of the x axis, with its unit.
    colours : mapping of str to str
        By label.
    share : bool
        Whether every bar is as long as the axis.
    grouped : bool
        Whether bars of a category lie one below the other.
    percent : bool
        Whether the quantity is a fraction, told in percent.
    """
    stack: Any = None if grouped else "normalize" if share else True
    axis = alt.Axis(format=".0%" if share or percent else "~s", tickCount=5)
    chart = (
        _base("c" if grouped else "", alt.NamedData(name=ROWS))
        .mark_bar(height={"band": 0.72})
        .encode(x=alt.X("x:Q", title=quantity, stack=stack, axis=axis), color=_colour(colours))
    )
    if not grouped:
        chart = chart.encode(order=alt.Order("o:Q"))
    step = alt.Step(BAND, **{"for": "offset"}) if grouped else alt.Step(LINE + 4)
    return specification(chart.properties(height=step))


def timeline(quantity: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Return points over time."""
    scale, axis = alt.Scale(type="utc"), alt.Axis(tickCount=6)
    across = alt.X("x:T", title="measured at (UTC)", scale=scale, axis=axis)
    upwards = alt.Y("y:Q", title=quantity, axis=alt.Axis(tickCount=5))
    points = alt.Chart(alt.NamedData(name=ROWS)).mark_point(filled=True, size=45)
    chart = points.encode(x=across, y=upwards, color=_colour(colours))
    return specification(chart.properties(height=200))


def heat(x: str, y: str) -> dict[str, Any]:
    """Return a heat map: ``x`` across, ``y`` down, ``v`` the shade, ``label`` the text."""
    base = alt.Chart(alt.NamedData(name=ROWS)).encode(
        x=alt.X(
            "x:N",
            sort="ascending",
            title=x,
            axis=alt.Axis(labelAngle=-30, orient="top", domain=False, ticks=False),
        ),
        y=alt.Y("y:N", sort=None, title=y, axis=alt.Axis(domain=False, ticks=False)),
    )
    shade = alt.Opacity("v:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 0.9]), legend=None)
    cells = base.mark_rect(color=GOLD, cornerRadius=3).encode(opacity=shade)
    texts = base.mark_text(fontSize=12).encode(text="label:N")
    # The last label above leans out to the right.
    space = {"left": 5, "top": 5, "right": 45, "bottom": 5}
    return specification(alt.layer(cells, texts).properties(height=alt.Step(30), padding=space))


def _quantitative(
    logarithmic: bool, zero: bool = True, domain: tuple[float, float] | None = None
) -> tuple[alt.Axis, alt.Scale]:
    """Return axis and scale of a quantity; a logarithmic axis has fixed ticks."""
    if logarithmic:
        return alt.Axis(values=TICKS, format="~g"), alt.Scale(type="log", nice=False, padding=10)
    ends: dict[str, Any] = {"domain": list(domain), "zero": False} if domain else {"zero": zero}
    return alt.Axis(tickCount=6), alt.Scale(**ends) if zero else alt.Scale(zero=False, padding=10)


def _reference(value: float, upright: bool = True) -> alt.Chart:
    """Return a dashed line across the chart, drawn once for any data."""
    line: alt.Chart = alt.Chart(alt.InlineData(values=[{}])).mark_rule(strokeDash=[4, 3], opacity=0.5)
    return line.encode(x=alt.XDatum(value)) if upright else line.encode(y=alt.YDatum(value))


def _base(offset: str = "", data: alt.NamedData | None = None) -> alt.Chart:
    """Return a chart with categories down the side, its marks within one apart by the field ``offset``."""
    # Grid lines between the categories, not through them.
    axis = alt.Axis(
        tickBand="extent",
        grid=bool(offset),
        labelExpr=BROKEN,
        labelOverlap=False,
        # Vega centres the first of two lines.
        labelOffset={"condition": {"test": f"length(datum.label) > {LONG}", "value": -5}, "value": 0},
    )
    encoding: dict[str, Any] = {"y": alt.Y("y:N", sort=None, title=None, axis=axis)}
    if offset:
        encoding["yOffset"] = alt.YOffset(f"{offset}:N", sort="ascending" if offset == "k" else None)
    return alt.Chart(alt.Undefined if data is None else data).encode(**encoding)


def _colour(colours: Mapping[str, str]) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color("c:N", title=None, scale=scale)
