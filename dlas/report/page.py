"""The page: one HTML file with its data, its script and Vega inside, which asks the network for nothing."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2
import markupsafe
import pandas as pd

from dlas.analysis.matching import SETTING, groups, natural
from dlas.report import charts
from dlas.report.blocks import Absent, Block, Chooser, Figure, Section
from dlas.report.context import NAMED, Context, significant
from dlas.report.sections import layers
from dlas.rows.labels import points as counted
from dlas.rows.results import STATUSES

MOST_LEGEND = 24
"""Labels in a legend; more are told by hovering."""
SNIPPET = "window.vegaEmbed = vegaEmbed;"
"""What the page takes from the bundle of Vega, Vega-Lite and Vega-Embed."""
MOST_FILTER = 500
LONGEST_REASON = 4000
REASON_BYTES = 4_000_000
"""Characters of one reason, and of all together."""
NUMBERS = {
    "ms": ("latency_s", 1e3),
    "low": ("latency_low_s", 1e3),
    "high": ("latency_high_s", 1e3),
    "first_run": ("first_run_s", 1e3),
    "samples": ("samples", 1),
    "accuracy": ("accuracy", 1),
    "error": ("error", 1),
    "parameters": ("parameters", 1),
    "macs": ("macs", 1),
    "size": ("model_bytes", 1),
    "nonzeros": ("nonzeros", 1),
    "effective": ("effective_macs", 1),
    "csr": ("csr_bytes", 1),
    "ratio": ("ratio", 1),
    "memory": ("peak_memory_bytes", 1),
    "coverage": ("coverage", 1),
    "trials": ("trials", 1),
    "load": ("load", 1),
}
"""Columns of numbers on the page: of the frame, and the factor to the page's unit."""


def page(context: Context, found: Sequence[Section | Absent], made: str) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    context : Context
    found : sequence of Section or Absent
    made : str
        By what and when, for the last line.
    """
    sections = [section for section in found if isinstance(section, Section)]
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=False,
        lstrip_blocks=True,
    )
    environment.filters |= {"code": _code, "breakable": _breakable}
    statuses = Counter(context.points["status"])
    return environment.get_template("page.html.jinja").render(
        title=", ".join(sorted(context.points["study"].dropna().unique())) or "no rows",
        about=_about(context),
        made=made,
        sections=sections,
        absent=[section for section in found if isinstance(section, Absent)],
        statuses=[(status, statuses[status]) for status in STATUSES if statuses[status]],
        filters=_filters(context),
        axes=context.varying,
        marks=_marks(context),
        most_legend=MOST_LEGEND,
        css=markupsafe.Markup(_source("page.css")),
        js=markupsafe.Markup(_source("page.js")),
        vega=_vega(),
        data=markupsafe.Markup(_json(_data(context, sections))),
    )


def figures(sections: Sequence[Section]) -> list[Figure]:
    """Return all figures of a report."""
    return [figure for section in sections for block in section.blocks if (figure := _figure(block))]


def _figure(block: Block) -> Figure | None:
    return block if isinstance(block, Figure) else block.figure if isinstance(block, Chooser) else None


def _code(text: str) -> markupsafe.Markup:
    """Return a text with what stands between backticks set as code."""
    pieces = [markupsafe.escape(piece) for piece in text.split("`")]
    if len(pieces) % 2 == 0:
        return markupsafe.escape(text)
    return markupsafe.Markup("").join(
        markupsafe.Markup("<code>{}</code>").format(piece) if at % 2 else piece
        for at, piece in enumerate(pieces)
    )


def _breakable(text: str) -> markupsafe.Markup:
    """Return a text that breaks before a part's options rather than within a word."""
    return markupsafe.escape(text).replace("(", markupsafe.Markup("<wbr>("))


@functools.cache
def _vega() -> markupsafe.Markup:
    """Return the libraries that draw, as one script."""
    import vl_convert

    return markupsafe.Markup(vl_convert.javascript_bundle(SNIPPET).replace("</script", "<\\/script"))


def _source(name: str) -> str:
    return resources.files("dlas.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that no HTML parser takes for markup."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _about(context: Context) -> str:
    points = context.points
    told = f"{counted(len(points))} from {', '.join(context.folders)}"
    machines = sorted(points["machine"].dropna().unique())
    if machines:
        told += f", measured on {', '.join(machines[:3])}" + (
            f" and {len(machines) - 3} more" if len(machines) > 3 else ""
        )
    days = points["started"].dropna()
    if len(days):
        first, last = days.min().date(), days.max().date()
        told += f", {first}" + (f" to {last}" if last != first else "")
    return told + "."


def _filters(context: Context) -> dict[str, list[str]]:
    """Return the values that may be chosen, of every axis that varies and of the status."""
    found = {}
    for axis in [*context.varying, "status"]:
        column = context.points[axis].dropna().astype(str)
        values = sorted(column.unique(), key=natural)
        if 1 < len(values) <= MOST_FILTER:
            found[axis] = values
    return found


def _marks(context: Context) -> list[dict[str, Any]]:
    """Return how each point looks in the matrix: its text, its class, and how fast it is in its setting."""
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
            text = context.told_ms(line) + (" ~" if noisy[line] else "")
            marks[line] = {"text": text, "style": "first" if ms == least else "", "speed": f"{speed:.2f}"}
    return marks


# ---------------------------------------------------------------- data of the script


def _data(context: Context, sections: Sequence[Section]) -> dict[str, Any]:
    found = {
        "axes": context.varying,
        "named": [*NAMED],
        "worded": ["batch", "seed"],
        "points": _columns(context),
        "figures": {figure.name: _drawing(figure) for figure in figures(sections)},
        "theme": charts.theme(),
    }
    chooser = next((b for s in sections for b in s.blocks if isinstance(b, Chooser)), None)
    if chooser is None:
        return found
    texts: dict[str, int] = {}
    told = [
        {
            "p": line,
            "names": [texts.setdefault(layer.name, len(texts)) for layer in of],
            "algorithms": [texts.setdefault(layer.algorithm, len(texts)) for layer in of],
            "us": [significant(layer.latency_s * 1e6, 4) for layer in of],
        }
        for line in layers.shown(context)
        for of in [context.details.layers[line]]
    ]
    chosen = {"first": chooser.first, "second": chooser.second}
    return found | {"layers": told, "texts": list(texts), "chosen": chosen, "most_bars": layers.MOST_BARS}


def _drawing(figure: Figure) -> dict[str, Any]:
    """Return a figure for the script: rows as columns, which are a third as long."""
    panels = [{"variant": panel.variant, "rows": _packed(panel.rows)} for panel in figure.panels]
    return {"specs": dict(figure.specs), "panels": panels, "filtered": figure.filtered}


def _packed(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _columns(context: Context) -> dict[str, Any]:
    points = context.points
    columns: dict[str, Any] = {name: _coded(context.columns[name]) for name in NAMED}
    for name in ("status", "step", "noisy_reason", "folder"):
        columns[name] = _coded([None if pd.isna(value) else str(value) for value in points[name]])
    columns["reason"] = _reasons(points)
    columns["id"] = points["id"].astype(str).tolist()
    columns["started"] = _coded(
        [None if pd.isna(value) else value.strftime("%Y-%m-%d %H:%M:%S UTC") for value in points["started"]]
    )
    for name, (column, times) in NUMBERS.items():
        values = points[column].astype("float64").to_numpy() * times
        columns[name] = [significant(value, 5 if times != 1 else 9) for value in values.tolist()]
    return columns


def _coded(values: Sequence[str | None]) -> dict[str, list[Any]]:
    """Return texts as a list of those there are, and for each point which of them it has; -1 for none."""
    codes: dict[str, int] = {}
    numbers = [-1 if value is None else codes.setdefault(value, len(codes)) for value in values]
    return {"values": list(codes), "codes": numbers}


def _reasons(points: pd.DataFrame) -> dict[str, list[Any]]:
    """Return the reasons, each cut so that all together stay within bounds."""
    given = [None if pd.isna(value) else str(value) for value in points["reason"]]
    different = len({value for value in given if value is not None})
    longest = max(200, min(LONGEST_REASON, REASON_BYTES // max(different, 1)))
    return _coded(
        [
            value
            if value is None or len(value) <= longest
            else f"{value[:longest]} … (`dlas show` prints it whole)"
            for value in given
        ]
    )
