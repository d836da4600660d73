"""The page: one HTML file that includes its data, its script and Vega, and needs no network."""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import markupsafe

from dlas.analysis.matching import SETTING, groups, natural
from dlas.face.reporting.blocks import Absent, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.data import data_of
from dlas.face.reporting.templates import source, templates
from dlas.sweep.rows.labels import points as counted
from dlas.sweep.rows.results import STATUSES

PACKAGE = "dlas.face.reporting"
MOST_LEGEND = 24
"""Most labels of a legend; others are shown on hovering."""
SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the page needs of the bundle of Vega, Vega-Lite and Vega-Embed."""
LONG, LONGEST_WORD = 18, 24
"""Characters of a cell on one line, and of a word that does not break."""
BREAKS = re.compile(r"(?=\()|(?<=[_+])")
"""Where a text may break, besides at its spaces."""
MOST_FILTER = 500
"""Most values of a filter."""


def page(context: Context, parts: Sequence[Section | Absent], made: str, number: int | None = None) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    made : str
        By which version and when it was made, for the last line.
    number : int, optional
        Of a page that asks where it comes from for one with another number.
    """
    sections = [section for section in parts if isinstance(section, Section)]
    environment = templates(PACKAGE, trim_blocks=False)
    environment.filters |= {"code": _code, "breakable": _breakable, "least": _least}
    statuses = Counter(context.points["status"])
    return environment.get_template("page.html.jinja").render(
        title=", ".join(_studies(context)) or "no rows",
        about=_about(context),
        same=context.same,
        made=made,
        sections=sections,
        absent=[section for section in parts if isinstance(section, Absent)],
        statuses=[(status, statuses[status]) for status in STATUSES if statuses[status]],
        filters=_filters(context),
        axes=context.varying,
        marks=_marks(context),
        most_legend=MOST_LEGEND,
        long=LONG,
        css=markupsafe.Markup(source(PACKAGE, "page.css")),
        js=markupsafe.Markup(source(PACKAGE, "page.js")),
        live=None if number is None else live(number),
        vega=_vega(),
        data=markupsafe.Markup(_json(data_of(context, sections))),
    )


def live(number: int) -> markupsafe.Markup:
    """Return what makes a page ask where it comes from for one with another number than its own."""
    line = markupsafe.Markup('<aside id="live" role="status" data-number="{}"></aside>').format(number)
    script = markupsafe.Markup(source(PACKAGE, "live.js"))
    return line + markupsafe.Markup("\n<script>{}</script>").format(script)


def _code(text: str) -> markupsafe.Markup:
    """Return a text with the parts between backticks set as code."""
    pieces = [markupsafe.escape(piece) for piece in text.split("`")]
    if len(pieces) % 2 == 0:
        return markupsafe.escape(text)
    return markupsafe.Markup("").join(
        markupsafe.Markup("<code>{}</code>").format(piece) if at % 2 else piece
        for at, piece in enumerate(pieces)
    )


def _breakable(text: str) -> markupsafe.Markup:
    """Return a text that may break before a part's options, and in narrow places between words of a name."""
    return markupsafe.Markup("<wbr>").join(markupsafe.escape(piece) for piece in BREAKS.split(text))


def _least(text: str) -> int:
    """Return the characters of the longest piece of a text that breaks before options only."""
    return min(LONGEST_WORD, max(map(len, text.replace("(", " (").split()), default=0))


@functools.cache
def _vega() -> markupsafe.Markup:
    """Return Vega, Vega-Lite and Vega-Embed as one script."""
    import vl_convert

    return markupsafe.Markup(vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script"))


def _json(value: object) -> str:
    """Return JSON without characters that an HTML parser reads as markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _studies(context: Context) -> list[str]:
    """Return the names of the studies; where nothing was measured, of those that were predicted."""
    told = context.points if len(context.points) else context.predicted
    return sorted(told["study"].dropna().unique())


def _about(context: Context) -> str:
    points = context.points
    about = f"{counted(len(points))} from {', '.join(context.folders)}"
    if len(context.predicted):
        more = " more" if len(points) else ""
        about += f" ({len(context.predicted):,}{more} were predicted)"
    machines = sorted(points["machine"].dropna().unique())
    if machines:
        about += f", measured on {', '.join(machines[:3])}" + (
            f" and {len(machines) - 3} more" if len(machines) > 3 else ""
        )
    days = points["started"].dropna()
    if len(days):
        first, last = days.min().date(), days.max().date()
        about += f", {first}" + (f" to {last}" if last != first else "")
    return f"{about}. {context.fewer}".rstrip()


def _filters(context: Context) -> dict[str, list[str]]:
    """Return the values to filter by, of every varying axis and of the status."""
    choices = {}
    for axis in [*context.varying, "status"]:
        column = context.points[axis].dropna().astype(str)
        values = sorted(column.unique(), key=natural)
        if 1 < len(values) <= MOST_FILTER:
            choices[axis] = values
    return choices


def _marks(context: Context) -> list[dict[str, Any]]:
    """Return each point's mark in the matrix: its text, its CSS class, and its speed within its setting."""
    marks: list[dict[str, Any]] = [{}] * len(context.points)
    noisy = context.points["noisy"].fillna(False).to_numpy(dtype=bool)
    for setting in groups(context.points, SETTING):
        times = [context.median_ms(line) for line in setting.tolist() if context.timed[line]]
        least, most = (min(times), max(times)) if times else (1.0, 1.0)
        for line in setting.tolist():
            if not context.timed[line]:
                status = context.status(line)
                text = "no time" if status == "ok" else status
                marks[line] = {"text": text, "style": status if status != "ok" else "failed", "speed": None}
                continue
            ms = context.median_ms(line)
            speed = math.log(most / ms) / math.log(most / least) if most > least else 1.0
            text = context.ms_text(line) + (" ~" if noisy[line] else "")
            marks[line] = {"text": text, "style": "first" if ms == least else "", "speed": f"{speed:.2f}"}
    return marks
