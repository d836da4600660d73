"""``experiments/supernet-digits``."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.stats import spearmanr

from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import points, slow
from benchmarks.recomputed.markdown import Value

ROWS = "supernet-digits/rows"
COLUMNS = {
    "accuracy, %": ("accuracy", 100.0),
    "multiply-adds, millions": ("macs", 1e-6),
    "time, ms": ("latency_s", 1e3),
}
"""The column of rows that each line of the table is about, and the factor to its unit."""


def spread(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the least, median and largest value of a column over all subnetworks."""
    column, factor = COLUMNS[cells["of 200 subnetworks"]]
    values = factor * points(ROWS)[column].dropna().astype(float)
    return {"least": values.min(), "median": values.median(), "largest": values.max()}


def order(first: str, second: str) -> float:
    """Return Spearman's coefficient of two columns."""
    frame = points(ROWS)[[first, second]].dropna()
    return float(spearmanr(frame[first], frame[second]).statistic)


@slow
def error(name: str) -> float:
    """Return by how many percent a predictor is off on subnetworks that were held out."""
    read = evaluated.read("latency_s", ROWS)
    return evaluated.errors("additive", {"costs": "stage"}, read, "latency_s", "compression/10")[name]
