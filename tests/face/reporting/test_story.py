"""What stands out, in sentences, and observations without data in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlas.analysis.roles import with_roles
from dlas.face.reporting.blocks import Paragraph, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections import checks, ratios, summary
from dlas.face.tables.table import Table
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.short_labels import with_short_labels
from tests.fixtures.rows import failing, row, write


def context_of(folder: Path, *rows: Row) -> Context:
    points, abbreviations = with_short_labels(with_roles(read(write(folder, rows))))
    return Context([str(folder)], points, abbreviations=abbreviations)


def story(context: Context) -> list[str]:
    (told,) = [
        block
        for block in summary.section(context).blocks
        if isinstance(block, Paragraph) and block.text == "What stands out"
    ]
    return [text for text, _ in told.items]


def pruned(ms: float, level: float, **given: Any) -> Row:
    technique = {"name": "weight_pruning", "level": level, "recipe": "none"}
    options = {"algorithm": "csr_direct", "compiler": "hand", **given}
    return row(ms, compression=technique, reached={"ratio": level, "level": level}, **options)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return context_of(
        tmp_path,
        row(40.0),
        row(10.0, compiler="hand"),
        row(12.0, compiler="hand", algorithm="gemm"),
        row(8.0, algorithm="library", compiler="onnxruntime"),
        pruned(12.5, 0.5),
        pruned(4.0, 0.9),
        failing("timeout", algorithm="gemm", reason="tune took longer than 600 s"),
    )


def test_the_fastest_and_the_runtime_that_it_beats_are_named(context: Context) -> None:
    told = story(context)
    assert told[0].startswith("The fastest takes ")
    assert told[0].endswith(" ms: weight_pruning(level=0.9) · csr_direct · hand.")
    assert "2.00 times as fast as the fastest runtime, onnxruntime." in told[1]


@pytest.mark.slow
def test_a_promise_stands_beside_the_gain(context: Context) -> None:
    (promise,) = [text for text in story(context) if text.startswith("By the work")]
    assert "weight_pruning(level=0.9) would make the network 10.0 times as fast; it makes it 2.5" in promise
    assert any("0 of 2 compressed networks" in text and "1 is slower" in text for text in story(context))
    (share,) = [text for text in story(context) if "overtakes the fastest dense code" in text]
    assert " %" in share and "csr_direct" in share


def test_winners_gains_of_schedules_and_failures_are_told(context: Context) -> None:
    told = story(context)
    winners = "direct for the dense network; csr_direct for weight_pruning."
    assert f"The fastest of the algorithms compiled here: {winners}" in told
    assert any(text.startswith("A hand-written schedule (hand) makes code 4.0") for text in told)
    assert told[-1].startswith("1 point of 7 without a result: 1 took too long. The reason: tune")


def scheduled(hand: dict[str, float], searched: dict[str, float]) -> list[Row]:
    """Return rows of networks that take 100 ms untuned, with the times of both kinds of schedules."""
    tuned: dict[str, Any] = {"compiler": "metaschedule", "tuning": {"trials": 64, "seconds": 9.0}}
    return [
        *(row(100.0, model=model) for model in hand | searched),
        *(row(ms, model=model, compiler="hand") for model, ms in hand.items()),
        *(row(ms, model=model, **tuned) for model, ms in searched.items()),
    ]


def test_means_of_schedules_are_over_the_points_that_both_have(tmp_path: Path) -> None:
    searched = {"a": 4.0, "b": 4.0, "c": 4.0}
    told = story(context_of(tmp_path, *scheduled({**dict.fromkeys("abc", 5.0), "d": 0.05}, searched)))
    gains = [text for text in told if "without one" in text]
    means = [float(text.partition(" times")[0].rpartition(" ")[2]) for text in gains]
    assert means == pytest.approx([20, 25], rel=0.05), gains
    assert all("the mean of 3 pairs that both kinds of schedules have, and" in text for text in gains)


def test_schedules_of_different_points_are_not_compared(tmp_path: Path) -> None:
    told = story(context_of(tmp_path, *scheduled({"a": 5.0}, {"b": 4.0})))
    assert sum("the mean of 1 pair, and" in text for text in told) == 2
    assert "No point has both kinds of schedules, so that neither is known to be the faster." in told


def test_a_half_is_told_of_more_than_two_networks(tmp_path: Path) -> None:
    rows = [row(10.0, compiler="hand"), *(pruned(ms, level) for level, ms in ((0.5, 8.0), (0.9, 4.0)))]
    assert not any("half of them" in text for text in story(context_of(tmp_path / "two", *rows)))
    told = story(context_of(tmp_path / "three", *rows, pruned(5.0, 0.8)))
    assert any("and half of them reach at most" in text for text in told)


def test_the_table_of_schedules_has_means_over_the_same_points(tmp_path: Path) -> None:
    rows = scheduled({"a": 5.0, "b": 0.05}, {"a": 4.0})
    section = ratios.tuning(context_of(tmp_path, *rows))
    assert isinstance(section, Section)
    table = section.blocks[-1]
    assert isinstance(table, Table) and "over the 1 point that all compilers" in table.caption
    cells = {line.cells[0].text: [cell.text for cell in line.cells] for line in table.lines}
    assert cells["hand"][1] == "2" and float(cells["hand"][-1]) == pytest.approx(20, rel=0.05)
    assert float(cells["metaschedule"][-1]) == pytest.approx(25, rel=0.05)


def test_several_networks_are_told_apart(tmp_path: Path) -> None:
    rows = [
        row(ms, model=model, algorithm=name)
        for model, name, ms in [
            ("a", "direct", 1.0),
            ("a", "gemm", 2.0),
            ("b", "direct", 2.0),
            ("b", "gemm", 1.0),
            ("c", "gemm", 1.0),
        ]
    ]
    told = story(context_of(tmp_path, *rows))
    assert told[0] == "The fastest: gemm for b and c; direct for a."


def test_an_order_that_changes_is_told(tmp_path: Path) -> None:
    rows = [
        row(1.0 + (algorithm == "gemm") * (1 if model % 2 else -0.5), model=f"m{model}", algorithm=algorithm)
        for model in range(4)
        for algorithm in ("direct", "gemm")
    ]
    (told,) = [text for text in story(context_of(tmp_path, *rows)) if "depends on" in text]
    assert told == (
        "Which of two algorithms is faster depends on the model: between two models, their order changes in "
        "4 of 6 comparisons."
    )


def test_observations_without_data_are_one_line(context: Context) -> None:
    section = checks.section(context)
    assert isinstance(section, Section)
    table, line = section.blocks
    assert isinstance(table, Table) and isinstance(line, Paragraph)
    numbers = {cells[0].text for cells in (each.cells for each in table.lines)} - {""}
    assert "X" in numbers and len(numbers) < 13
    named = line.text.partition(":")[0].removeprefix("These rows say nothing of observations ")
    assert numbers | set(named.replace(" and ", ", ").split(", ")) == {
        *("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII")
    }
