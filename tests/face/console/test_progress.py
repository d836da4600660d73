"""What is seen of a sweep while it runs."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from dlas.face.console.clocks import EpochTimer, QuietClock, RemainingTime
from dlas.face.console.progress import ConsoleDisplay
from dlas.sweep.engine.planning import Plan, Step
from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.study.study import Study
from tests.fixtures.rows import failing, row

STUDY = Study({"algorithm": ["direct", "gemm"], "batch": [1]})


@pytest.fixture
def runs() -> list[PointRun]:
    """Two points of which the first works on its network."""
    steps = tuple(Step(name, name, {}, name) for name in ("network", "build", "check"))
    measure = Step("measure", "", {})
    first, second = (
        PointRun(Plan(point.id, point.content(), (), point.device, steps, measure, ""), Path("log"))
        for point in STUDY.points()
    )
    first.job = 1
    return [first, second]


class Screen:
    """A terminal, and what a progress draws on it."""

    def __init__(self, terminal: bool = True, lines: bool = True) -> None:
        self.file = io.StringIO()
        self.now_s = 0.0
        clock = QuietClock(now=lambda: self.now_s)
        console = Console(file=self.file, force_terminal=terminal, width=100, color_system=None)
        self.display = ConsoleDisplay(console, lines, clock=clock)
        self.progress = self.display.sweep(2, STUDY.varying(), inline=False)

    def drawn(self, runs: list[PointRun], summary: Summary, waiting_for: str = "") -> str:
        """Draw, and return what is new on the screen."""
        self.file.seek(0)
        self.file.truncate()
        self.progress.show(runs, summary, waiting_for)
        return self.file.getvalue()


def test_what_is_under_way_is_named_and_nothing_that_has_ended_stays(runs: list[PointRun]) -> None:
    screen, first = Screen(), runs[0]
    with screen.progress:
        screen.progress.say(first, "epoch 1 of 3")
        drawn = screen.drawn(runs, Summary())
        assert "network direct: epoch 1 of 3" in drawn and "0/2 points" in drawn and "elapsed" in drawn
        first.ended = 1
        drawn = screen.drawn(runs, Summary())
        assert "build   direct" in drawn and "epoch" not in drawn
        first.job = None
        drawn = screen.drawn(runs, Summary())
        assert "direct" not in drawn
        held = "device 'board', which process 7 holds"
        assert f"waiting for {held}" in screen.drawn(runs, Summary(), held)


def test_training_says_how_long_it_still_takes() -> None:
    timer = EpochTimer()
    said = [
        timer.left(f"epoch {epoch} of 20, validation accuracy 9%", now)
        for epoch, now in ((4, 100.0), (5, 130.0), (8, 180.0), (20, 300.0), (1, 301.0), (2, 302.0))
    ]
    assert said == ["", ", about 7 min 30 s left", ", about 4 min 00 s left", "", "", ", about 18 s left"]
    assert timer.left("evaluating", 400.0) == ""


def test_the_bar_counts_steps_and_says_the_best_so_far(runs: list[PointRun]) -> None:
    screen = Screen()
    with screen.progress:
        before = screen.drawn(runs, Summary()).count("━")
        screen.progress.row(row(20, algorithm="direct"))
        screen.progress.row(row(10, algorithm="gemm"))
        screen.progress.row(failing(algorithm="winograd"))
        drawn = screen.drawn(runs[1:], Summary(Counter(ok=1)))
    assert re.search(r"best    (9\.9|10\.0)\d* ms: gemm", drawn)
    assert "1/2 points" in drawn and "left" not in drawn
    assert drawn.count("━") >= before + 15  # the bar of 40 characters


def test_the_time_left_is_told_once_it_agrees_with_what_it_was_at_half_the_time(runs: list[PointRun]) -> None:
    screen = Screen()
    with screen.progress:
        for now_s, written, left in ((0, 0, ""), (10, 1, ""), (14, 1, ""), (21, 2, "about 0 s left")):
            screen.now_s = now_s
            drawn = screen.drawn(runs[written:], Summary(Counter(ok=written)))
            assert (left in drawn) if left else ("left" not in drawn)
        drawn = screen.drawn(runs, Summary(written=Counter({"ok": 2})), "device 'x', which process 7 holds")
        assert "left" not in drawn  # what another process takes is not known
    remaining = RemainingTime()
    steady = [remaining.left_s(10.0 * done, done, 100) for done in range(1, 5)]
    assert steady == [None, 980, 970, 960]
    slower = [remaining.left_s(elapsed, 4, 100) for elapsed in (80, 100, 140)]
    assert slower == [None, None, None], "its total has more than doubled since"
    assert remaining.left_s(200, 6, 100) == pytest.approx(200 * 94 / 6)


def test_a_quiet_clock_speaks_after_two_seconds_and_then_more_rarely() -> None:
    now_s = 0.0
    clock = QuietClock(now=lambda: now_s)
    spoken = []
    for now_s in range(300):
        if now_s == 100:
            clock.spoke()
        if clock.due():
            spoken.append(now_s)
    assert spoken == [2, 6, 14, 30, 62, 160, 220, 280]


@pytest.mark.parametrize("lines", [True, False])
def test_without_a_terminal_nothing_is_silent_for_long(lines: bool, runs: list[PointRun]) -> None:
    screen = Screen(terminal=False, lines=lines)
    with screen.progress:
        assert screen.drawn(runs, Summary()) == ""
        screen.now_s = 2.5
        assert screen.drawn(runs, Summary()) == "  0/2 points, 2 s elapsed; network direct\n"
        assert screen.drawn(runs, Summary()) == ""
        screen.now_s = 7
        assert screen.drawn([], Summary(), "device 'x'").endswith("; waiting for device 'x'\n")
        screen.display.status("generation 3")
        screen.now_s = 20
        screen.display.part().status("generation 4")
    assert screen.file.getvalue().splitlines()[1:] == ["  generation 4"]


def test_without_a_terminal_every_line_names_its_point(runs: list[PointRun]) -> None:
    screen = Screen(terminal=False)
    with screen.progress:
        screen.progress.say(runs[0], "epoch 1 of 3")
        screen.progress.say(runs[0], "epoch 2 of 3")
        screen.progress.show(runs, Summary(), "")
        timed, failed = row(20), failing(algorithm="gemm")
        screen.progress.row(timed)
        screen.progress.row(failed)
    lines = screen.file.getvalue().splitlines()
    assert lines[0] == "  network: direct: epoch 1 of 3"
    assert lines[1].startswith(f"1/2 ok {timed.id[:8]} direct: 20")
    assert lines[2] == f"2/2 failed {failed.id[:8]} gemm: it was failed"
    assert len(lines) == 3


@pytest.mark.parametrize("terminal", [True, False])
def test_without_lines_there_is_a_bar_on_a_terminal_and_nothing_else(
    terminal: bool, runs: list[PointRun]
) -> None:
    screen = Screen(terminal, lines=False)
    with screen.progress:
        screen.progress.say(runs[0], "epoch 1 of 3")
        screen.progress.row(row(20, algorithm="gemm"))
        drawn = screen.drawn(runs, Summary(Counter(ok=1)))
    assert ("1/2 points" in drawn) == terminal and "gemm: 20" not in drawn
    assert terminal or not drawn
