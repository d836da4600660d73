"""Columns are shown in units that people read."""

from __future__ import annotations

import pytest

from dlas.rows.labels import shown_in


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
