"""Draw the pictures of the pages in ``concepts``: ``python -m docs.figures``.

Each is an SVG on a white ground, which can be read on a dark page too.  Charts are drawn from kept rows,
diagrams from the texts below.  Run from the root of the repository; it takes a minute.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from benchmarks.predictors import HELD_LEVELS
from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import only, points
from dlas.analysis.break_even import curves
from dlas.face.reporting import charts
from dlas.face.reporting.files import INK, PAPER
from dlas.face.reporting.palette import colours
from dlas.prediction.learning.settings import predictor_of

PICTURES = Path(__file__).parent / "pictures"
Chart = alt.LayerChart | alt.FacetChart
MARK = "#2f6fb3"
"""Colour of what a figure is about."""
TARGET = "latency_min_s"
LAYERS = (
    ("dataset", "images, their size, number of classes", "digits · fashion_mnist · random"),
    ("model", "the network and its width", "resnet18 · cifar_vgg16 · onnx"),
    ("compression", "zeros, fewer channels, smaller numbers", "weight_pruning · int8"),
    ("algorithm and data format", "how a convolution is computed, how weights lie", "winograd · csr_gemm"),
    ("compiler", "schedules: fixed, searched, a runtime's own", "hand · metaschedule · onnxruntime"),
    ("hardware", "processor, threads, clocks", "local_cpu · pi4.toml · chromium"),
)
"""Each layer of the stack: its name, what it decides, and parts of it."""
PAIRS = ((3, 4), (2, 3), (2, 5))
"""Places of the layers that each finding of the page is about."""
STEPS = (
    ("network", "dataset, model, compression", "weights"),
    ("tune", "algorithm, compiler, target", "schedules"),
    ("build", "algorithm, compiler, target", "a program"),
    ("measure", "the study's settings", "a row"),
)
"""Each step of a point: its name, what its key adds, and what it makes."""


def main() -> None:
    """Write all pictures."""
    for name, draw in FIGURES.items():
        (PICTURES / f"concepts-{name}.svg").write_text(draw(), encoding="utf-8")
        print(f"wrote concepts-{name}.svg")


def layers() -> str:
    """Return the six layers, one below the other, and brackets beside those that a finding is about."""
    left, width, height, step = 10, 540, 46, 54
    middles = [10 + number * step + height / 2 for number in range(len(LAYERS))]
    shapes = []
    for (name, decides, parts), middle in zip(LAYERS, middles, strict=True):
        shapes += [
            _box(left, middle - height / 2, width, height),
            _text(left + 14, middle - 3, name, bold=True),
            _text(left + 14, middle + 14, decides, small=True),
            _text(left + width - 14, middle + 5, parts, small=True, anchor="end"),
        ]
    for number, (one, other) in enumerate(PAIRS, 1):
        shapes += _bracket(left + width + 4, middles[one], middles[other], 30 * number, str(number))
    return _drawing(left + width + 30 * len(PAIRS) + 24, middles[-1] + height / 2 + 10, shapes)


def keys() -> str:
    """Return the steps of a point from left to right, each with what its key covers."""
    width, height, gap, top = 196, 88, 40, 10
    shapes = []
    for number, (name, adds, makes) in enumerate(STEPS):
        left = 10 + number * (width + gap)
        middle = left + width / 2
        shapes += [
            _box(left, top, width, height),
            _text(middle, top + 22, name, bold=True, anchor="middle"),
            _text(middle, top + 44, adds, small=True, anchor="middle"),
            _text(middle, top + 60, "their code, versions", small=True, anchor="middle"),
            _text(middle, top + 78, f"makes: {makes}", small=True, anchor="middle"),
        ]
        if number:
            shapes += [
                _arrow(left - gap + 3, left - 3, top + height / 2),
                _text(left - gap / 2, top + height / 2 - 8, "key", small=True, anchor="middle"),
            ]
    return _drawing(20 + len(STEPS) * width + (len(STEPS) - 1) * gap, 2 * top + height, shapes)


def turns() -> str:
    """Return three points that are measured in turns, over time."""
    left, step, height, slice_width = 96, 58, 34, 46
    shapes = []
    for row, name in enumerate(("point A", "point B", "point C")):
        top = 10 + row * (height + 10)
        shapes.append(_text(10, top + 22, name, bold=True))
        for turn in range(3):
            start = left + (turn * 3 + row) * step
            shapes += [
                _box(start + 10, top, slice_width - 12, height),
                _text(start + 10 + (slice_width - 12) / 2, top + 22, "slice", small=True, anchor="middle"),
                _bar(start + 4, top, height),
                _bar(start + slice_width + 2, top, height),
            ]
    bottom = 10 + 3 * (height + 10)
    right = left + 9 * step
    shapes += [
        _arrow(left, right, bottom + 6),
        _text(right, bottom + 24, "time", small=True, anchor="end"),
        _bar(left + 4, bottom + 14, 12),
        _text(left + 14, bottom + 24, "the sentinel; the warm-up comes before it", small=True),
    ]
    return _drawing(right + 10, bottom + 34, shapes)


def rankings() -> str:
    """Return the order of algorithms on a network, untuned and tuned."""
    network = only(points("tuned-vs-untuned/rows", "tuned-vs-untuned/again"), model_name="cifar_resnet18")
    titles = {"untuned": "untuned", "metaschedule": "tuned"}
    chosen = network[network["compiler_name"].isin(list(titles))]
    rows = pd.DataFrame(
        {
            "compiler": chosen["compiler_name"].map(titles),
            "algorithm": chosen["algorithm"].str.replace("(layout=blocked)", " in blocks"),
            "slower": chosen["latency_s"] / chosen.groupby("compiler_name")["latency_s"].transform("min"),
        }
    )
    return _svg(_slopes(rows))


def _slopes(rows: pd.DataFrame) -> Chart:
    """Return a line for each algorithm between the two compilers."""
    across = alt.X("compiler:N", title=None, sort=["untuned", "tuned"], axis=alt.Axis(labelAngle=0))
    scale = alt.Scale(type="log", nice=False, padding=14)
    upwards = alt.Y("slower:Q", title="time over the fastest", scale=scale, axis=alt.Axis(values=[1, 2, 3]))
    colour = alt.Color("algorithm:N", title=None, scale=_scale("algorithm", rows["algorithm"]), legend=None)
    base = alt.Chart(rows).encode(x=across, y=upwards, color=colour)
    names = base.transform_filter("datum.compiler == 'tuned'").mark_text(align="left", dx=9, fontSize=12)
    lines = base.mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=60, opacity=1))
    return alt.layer(lines, names.encode(text="algorithm:N")).properties(width=300, height=260)


def break_even() -> str:
    """Return the speed of sparse code over the fastest dense code by the share of zeros."""
    found = [
        {"algorithm": curve.algorithm, "zeros": 100 * level, "speed": speed, "low": low, "high": high}
        for curve in curves(points("sparse-break-even/zen4"))
        for level, (speed, low, high) in zip(curve.ratios, curve.speeds, strict=True)
    ]
    rows = pd.DataFrame(found)
    across = alt.X("zeros:Q", title="zeros among the weights, %", scale=alt.Scale(domain=[48, 100]))
    upwards = alt.Y(
        "speed:Q",
        title="times as fast as the fastest dense code",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(values=charts.TICKS, format="~g"),
    )
    colour = alt.Color("algorithm:N", title=None, scale=_scale("algorithm", rows["algorithm"]))
    base = alt.Chart(rows).encode(x=across, color=colour)
    even = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(strokeDash=[5, 4]).encode(y="one:Q")
    error = base.mark_rule(opacity=0.4).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(strokeWidth=2).encode(y=upwards)
    dots = base.mark_point(filled=True, size=75, opacity=1).encode(
        y=upwards, shape=alt.Shape("algorithm:N", legend=None)
    )
    return _svg(alt.layer(even, error, line, dots).properties(width=440, height=270))


def intervals() -> str:
    """Return predictions of training steps with their intervals, over what was measured."""
    rows = _predictions()
    axis = alt.Axis(format="~s", tickCount=5)
    scale = alt.Scale(type="log", nice=False, padding=10)
    across = alt.X("measured:Q", title="measured, s", scale=scale, axis=axis)
    upwards = alt.Y("predicted:Q", title="predicted, s", scale=scale, axis=axis)
    base = alt.Chart(rows).encode(x=across)
    equal = base.mark_line(strokeDash=[5, 4], color=INK).encode(y=alt.Y("measured:Q", title="predicted, s"))
    rule = base.mark_rule(opacity=0.35, color=MARK).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    dots = base.mark_point(filled=True, size=22, opacity=1, color=MARK).encode(y=upwards)
    return _svg(alt.layer(equal, rule, dots).properties(width=440, height=300))


def _predictions() -> pd.DataFrame:
    """Return what `additive` says of pruning levels that it was not fitted to."""
    steps = evaluated.read(TARGET, "training-cost/rows", "training-cost/again")
    predictors = {"additive": predictor_of("additive", {})}
    (setting,) = evaluated.evaluated(predictors, steps, TARGET, str(HELD_LEVELS))
    (held_out,) = setting.first.tried
    if held_out.half_widths is None:
        raise AssertionError("too few levels are held out for intervals")
    spread = np.exp(held_out.half_widths)
    return pd.DataFrame(
        {
            "measured": setting.first.samples.target[held_out.fold.tried],
            "predicted": held_out.predicted,
            "low": held_out.predicted / spread,
            "high": held_out.predicted * spread,
        }
    )


def _scale(axis: str, labels: Iterable[str]) -> alt.Scale:
    """Return the colours that reports give these labels."""
    known = colours(axis, labels)
    return alt.Scale(domain=list(known), range=list(known.values()))


def _svg(chart: Chart) -> str:
    """Return a chart as SVG, in the report's style on a white ground."""
    spec: dict[str, Any] = chart.to_dict()
    spec["config"] = charts.theme(INK) | {"background": PAPER}
    return vl_convert.vegalite_to_svg(json.dumps(spec))


def _drawing(width: float, height: float, shapes: Sequence[str]) -> str:
    """Return shapes as an SVG on a white ground."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui, \'DejaVu Sans\', sans-serif" fill="{INK}">'
    )
    ground = f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
    return "\n".join([head, ground, *shapes, "</svg>\n"])


def _box(left: float, top: float, width: float, height: float) -> str:
    return (
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="6" '
        f'fill="{MARK}" fill-opacity="0.1" stroke="{MARK}"/>'
    )


def _text(
    left: float, top: float, text: str, *, bold: bool = False, small: bool = False, anchor: str = "start"
) -> str:
    size, weight = (12 if small else 14), ("bold" if bold else "normal")
    return (
        f'<text x="{left:g}" y="{top:g}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def _bar(left: float, top: float, height: float) -> str:
    return f'<rect x="{left:g}" y="{top:g}" width="3" height="{height:g}" fill="{INK}"/>'


def _bracket(left: float, top: float, bottom: float, out: float, text: str) -> list[str]:
    """Return a line around the ends of two layers, with a text in its middle."""
    middle = (top + bottom) / 2
    path = f"M{left:g} {top + 4:g} h{out:g} V{bottom - 4:g} h{-out:g}"
    return [
        f'<path d="{path}" stroke="{MARK}" stroke-width="1.5" fill="none"/>',
        f'<circle cx="{left + out:g}" cy="{middle:g}" r="11" fill="{PAPER}" stroke="{MARK}"/>',
        _text(left + out, middle + 5, text, bold=True, anchor="middle"),
    ]


def _arrow(left: float, right: float, top: float) -> str:
    head = f"M{right:g} {top:g} l-7 -4 v8 z"
    return f'<path d="M{left:g} {top:g} H{right - 6:g}" stroke="{INK}"/><path d="{head}"/>'


FIGURES: dict[str, Callable[[], str]] = {
    "layers": layers,
    "keys": keys,
    "turns": turns,
    "rankings": rankings,
    "break-even": break_even,
    "intervals": intervals,
}
"""Pictures by their name."""

if __name__ == "__main__":
    main()
