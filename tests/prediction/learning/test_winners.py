"""Which share of the winners of a search keeps its bound, by the margin."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.recomputed import ofa_latency
from benchmarks.recomputed.markdown import agrees
from benchmarks.subnet_kept import KeptSearch, KeptWinner, Outcome, keep, read_kept
from benchmarks.subnet_winners import draw, main, margins, wilson
from dlas.errors import InputError
from dlas.sweep.rows.results import Row
from tests.fixtures.rows import row


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


def kept_in(folder: Path) -> None:
    """Keep two searches of two winners; the machine is half as fast as when its rows were measured."""
    searches: list[KeptSearch] = []
    lines: list[Row] = []
    for bound, score, times in ((0.010, 0.7, (9, 10.5)), (0.020, 0.8, (19, 25))):
        winners = []
        for milliseconds in times:
            reference, winner = (
                row(taken, spread=0, seed=len(lines) + at) for at, taken in enumerate((20, 2 * milliseconds))
            )
            lines += [reference, winner]
            winners.append(
                KeptWinner(
                    id=winner.id,
                    reference=reference.id,
                    estimated=bound,
                    high=1.2 * bound,
                    score=score,
                    before=0.010,
                )
            )
        searches.append(
            KeptSearch(
                quantity="latency_s",
                bound=bound,
                estimators={"predictors/here": "12ab"},
                value=bound,
                score=score,
                winners=winners,
            )
        )
    keep(searches, [each.line().encode() for each in lines], folder)


def test_the_table_of_winners_follows_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_in(tmp_path / "ofa-latency/winners")
    searches, outcomes = read_kept(tmp_path / "ofa-latency/winners")
    assert [each.estimators for each in searches] == [{"predictors/here": "12ab"}] * 2
    assert [each.scaled for each in outcomes] == pytest.approx([0.009, 0.0105, 0.019, 0.025])
    monkeypatch.setattr(ofa_latency, "EXPERIMENTS", tmp_path)
    margin = "margin between estimate and bound"
    none, tenth, own = (
        ofa_latency.winners({margin: each}) for each in ("0 %", "10 %", "20 %, of the intervals")
    )
    assert agrees("2 of 4", none["keep their bound"]) and agrees("50 % (15 to 85 %)", none[""])
    assert agrees("3 of 4", own["keep their bound"]) and agrees("0", none["score given up"])
    assert agrees("0.0182", tenth["score given up"])

    monkeypatch.setattr("sys.argv", ["subnet_winners", "--kept", str(tmp_path / "ofa-latency/winners")])
    main()
    assert "| 10.0% | 3 of 4 | 75% (30% to 95%) | 0.01818 |" in capsys.readouterr().out


def test_rows_of_other_winners_are_refused(tmp_path: Path) -> None:
    kept_in(tmp_path)
    (tmp_path / "results.jsonl").write_text(row(1).line())
    with pytest.raises(InputError, match=r"its rows are not those of the winners in searches\.json"):
        read_kept(tmp_path)
