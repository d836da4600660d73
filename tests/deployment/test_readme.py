"""What the README of a deployed program says of its row."""

from __future__ import annotations

from dlas.deployment.readme import _summary
from tests.fixtures.rows import row


def test_the_reason_of_an_unstable_time_stands_once() -> None:
    said = _summary(row(5, status="unstable", reason="twice as slow at the end"), ())
    assert said.count("twice as slow at the end") == 1 and "unstable, so no result" in said
