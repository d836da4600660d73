"""Minutes are counted before and while they are spent."""

from __future__ import annotations

import pytest

from dlas.axes.compilers.hand import Hand
from dlas.axes.compilers.metaschedule import MetaSchedule
from dlas.axes.compilers.onnxruntime import OnnxRuntime
from dlas.errors import InputError, Unfinished
from dlas.prediction.adaptive.device.budget import (
    FEWEST_A_ROUND,
    FEWEST_PAIRS,
    FIRST,
    PATIENCE,
    PROBED,
    check_minutes,
    check_number,
    check_pace,
    end_s,
    points_of_round,
    stop_reason,
    usual_s,
)
from dlas.prediction.adaptive.loop import LoopBudget


def clock(minutes: float, before_s: float = 0.0) -> LoopBudget:
    """Return a clock that stands still."""
    return LoopBudget(minutes=minutes, before_s=before_s, now=lambda: 0.0)


def test_the_clock_counts_the_seconds_of_earlier_runs() -> None:
    times = iter([100.0, 103.0, 104.0])
    found = LoopBudget(minutes=2, before_s=30.0, now=lambda: next(times))
    assert found.spent_s == 33.0
    assert found.left_s == 120 - 34


def test_a_search_takes_longer_than_a_compiler_and_that_than_a_runtime() -> None:
    assert usual_s(MetaSchedule) > usual_s(Hand) > usual_s(OnnxRuntime) > 0


def test_too_few_minutes_are_refused_with_those_that_it_takes() -> None:
    needed = (4 * FIRST + end_s(4.0, 5, 20.0)) / 60
    with pytest.raises(InputError, match=rf"`minutes=1`: {FIRST} points.*about 6 minutes with onnx"):
        check_minutes(1, "onnxruntime", 4.0, 5)
    assert 4 < needed < 5
    check_minutes(5, "onnxruntime", 4.0, 5)
    for minutes in (float("nan"), float("inf"), -1.0, 0.0):
        with pytest.raises(InputError, match=f"`minutes={minutes:g}`: expected a number above 0"):
            check_number(minutes)
    check_number(0.5)


def test_a_slower_pace_than_usual_stops_with_the_minutes_that_go_on() -> None:
    with pytest.raises(Unfinished, match=r"10 s here, and 5 points.*`minutes=\d+` goes on") as told:
        check_pace(clock(3, before_s=60.0), 5, 10.0, 1)
    minutes = int(str(told.value).partition("with `minutes=")[2].partition("`")[0])
    check_pace(clock(minutes, before_s=60.0), 5, 10.0, 1)
    with pytest.raises(Unfinished):
        check_pace(clock(minutes - 2, before_s=60.0), 5, 10.0, 1)


@pytest.mark.parametrize("point_s", [3.0, 9.0, 13.0, 22.0, 40.0])
def test_minutes_that_are_advised_are_enough_where_points_turn_out_slower(point_s: float) -> None:
    spent_s = 20 + PROBED * point_s
    with pytest.raises(Unfinished) as told:
        check_pace(clock(1, before_s=spent_s), PROBED, point_s, 5)
    minutes = int(str(told.value).partition("with `minutes=")[2].partition("`")[0])
    for measured in range(PROBED, FIRST + 1):
        slower_s = 1.15 * point_s
        check_pace(clock(minutes, spent_s + slower_s * (measured - PROBED)), measured, slower_s, 5)


def test_a_round_grows_with_what_is_known_and_takes_what_would_be_left_over() -> None:
    assert points_of_round(28, 1000) == FEWEST_A_ROUND
    assert points_of_round(400, 1000) == 100
    assert points_of_round(400, 102) == 102
    assert points_of_round(400, 20) == 20
    assert points_of_round(400, 2) == points_of_round(400, -5) == 0


def test_nothing_more_is_measured_at_the_noise_floor() -> None:
    assert stop_reason([0.2, 0.04], 0.03, FEWEST_PAIRS) is not None
    assert stop_reason([0.2, 0.04], 0.03, FEWEST_PAIRS - 1) is None, "so few pairs tell no floor"
    assert stop_reason([0.2, 0.05], 0.03, FEWEST_PAIRS) is None
    assert stop_reason([0.2, 0.04], None, 0) is None


def test_nothing_more_is_measured_where_the_error_stays() -> None:
    falling = [0.2 * 0.9**number for number in range(10)]
    assert all(stop_reason(falling[: end + 1], None, 0) is None for end in range(10))
    stays = [0.2, 0.1, *[0.099] * PATIENCE]
    assert "not become smaller" in (stop_reason(stays, None, 0) or "")
    assert stop_reason(stays[:-1], None, 0) is None
    assert stop_reason([*stays[:-1], 0.08], None, 0) is None
