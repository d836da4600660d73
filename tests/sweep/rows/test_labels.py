"""Columns are shown in units that people read."""

from __future__ import annotations

import math

import pytest

from dlas.sweep.rows.labels import interval_ms, shown_in


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        ("latency_s", ("latency", "ms", 1e3)),
        ("peak_memory_bytes", ("peak memory", "MB", 1e-6)),
        ("energy_j", ("energy", "mJ", 1e3)),
        ("clock_mean_hz", ("clock mean", "MHz", 1e-6)),
        ("accuracy", ("accuracy", "", 1.0)),
        ("effective_macs", ("effective macs", "", 1.0)),
    ],
)
def test_a_column_has_words_and_a_unit(column: str, shown: tuple[str, str, float]) -> None:
    assert shown_in(column) == shown


def test_a_time_whose_bounds_nobody_knows_stands_alone() -> None:
    assert interval_ms(0.01234, 0.0123, 0.01242) == "12.34 [12.30, 12.42]"
    assert interval_ms(0.01234, math.nan, math.nan) == "12.34"
