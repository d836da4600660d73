"""Which share of the winners of a search keeps its bound, by the margin."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.subnet_winners import Outcome, draw, margins, wilson


def outcome(scaled: float) -> Outcome:
    return Outcome(bound=1.0, estimated=1.0, high=1.04, measured=2.0, scaled=scaled, noisy=False)


def test_a_margin_keeps_those_that_are_no_slower_and_costs_score(tmp_path: Path) -> None:
    found = margins([outcome(0.99), outcome(1.03), outcome(1.2)], [(1.0, 0.8), (0.5, 0.7)])
    kept = {round(each.margin, 3): sum(each.kept) for each in found}
    assert kept == {0.0: 1, 0.005: 1, 0.01: 1, 0.02: 1, 0.03: 2, 0.04: 2, 0.05: 2, 0.1: 2}
    assert [each.margin for each in found if each.own] == pytest.approx([0.04])
    # The score falls by 0.2 a second between the two searches.
    assert found[-1].given_up == pytest.approx(0.2 * (1 - 1 / 1.1))
    assert found[0].given_up == 0
    draw(found, tmp_path)
    assert "score given up" in (tmp_path / "winners-by-margin.svg").read_text()


def test_a_single_search_tells_no_score_given_up(tmp_path: Path) -> None:
    found = margins([outcome(0.99)], [(1.0, 0.8)])
    assert all(math.isnan(each.given_up) for each in found)
    draw(found, tmp_path)
    assert "score given up" not in (tmp_path / "winners-by-margin.svg").read_text()


def test_the_interval_of_a_share_is_wilsons() -> None:
    assert wilson([True] * 49 + [False]) == pytest.approx((0.895, 0.9965), abs=1e-3)
