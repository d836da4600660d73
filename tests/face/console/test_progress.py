"""What is seen of a sweep while it runs."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from dlas.face.console.progress import SweepProgress
from dlas.sweep.engine.planning import Plan, Step
from dlas.sweep.engine.point_run import PointRun, Summary
from dlas.sweep.study.study import Study
from tests.fixtures.rows import failing, row

STUDY = Study({"algorithm": ["direct", "gemm"], "batch": [1]})


@pytest.fixture
def runs() -> list[PointRun]:
    """Two points of which the first works on its network."""
    steps = tuple(Step(name, name, {}, name) for name in ("network", "build", "check"))
    plan = Plan(steps, Step("measure", "", {}), "")
    first, second = (PointRun(point, plan, Path("log")) for point in STUDY.points())
    first.job = 1
    return [first, second]


class Screen:
    """A terminal, and what a progress draws on it."""

    def __init__(self, terminal: bool = True, lines: bool = True) -> None:
        self.file = io.StringIO()
        console = Console(file=self.file, force_terminal=terminal, width=100, color_system=None)
        self.progress = SweepProgress(2, console, STUDY.varying(), lines=lines)

    def drawn(self, runs: list[PointRun], summary: Summary, idle: bool = False) -> str:
        """Draw, and return what is new on the screen."""
        self.file.seek(0)
        self.file.truncate()
        self.progress.show(runs, summary, idle)
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
        assert "that another sweep holds" in screen.drawn(runs, Summary(), idle=True)


def test_the_bar_counts_steps_and_says_what_is_left_and_the_best_so_far(runs: list[PointRun]) -> None:
    screen = Screen()
    with screen.progress:
        before = screen.drawn(runs, Summary()).count("━")
        screen.progress.row(row(20, algorithm="direct"))
        screen.progress.row(row(10, algorithm="gemm"))
        screen.progress.row(failing(algorithm="winograd"))
        drawn = screen.drawn(runs[1:], Summary(Counter(ok=1)))
    assert re.search(r"best    (9\.9|10\.0)\d* ms: gemm", drawn)
    assert "about 0 s left" in drawn and "1/2 points" in drawn
    assert drawn.count("━") >= before + 15  # the bar of 40 characters


def test_without_a_terminal_every_line_names_its_point(runs: list[PointRun]) -> None:
    screen = Screen(terminal=False)
    with screen.progress:
        screen.progress.say(runs[0], "epoch 1 of 3")
        screen.progress.say(runs[0], "epoch 2 of 3")
        screen.progress.show(runs, Summary(), idle=False)
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
