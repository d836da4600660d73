"""Inference and training are never compared: a task separates rows as another machine does."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dlas
from dlas.analysis.break_even import curves
from dlas.analysis.choosing.layers import layer_costs
from dlas.analysis.compare import compare
from dlas.analysis.correlations import correlations
from dlas.analysis.interactions import interactions
from dlas.analysis.observations import Evidence, observe
from dlas.analysis.options import settings_by_part
from dlas.analysis.pareto import COSTS, pareto
from dlas.analysis.rankings import rankings
from dlas.analysis.repeats import merge_repeats
from dlas.analysis.roles import with_roles
from dlas.analysis.speedups import speedups
from dlas.analysis.winners import fastest_id, standings
from dlas.deployment.deploying import deploy
from dlas.errors import InputError
from dlas.face.tables.points import ordered
from dlas.sweep.rows.frame import read
from dlas.sweep.rows.results import Row, read_rows
from tests.fixtures.rows import CPU, again, row, write
from tests.fixtures.sweeps import sweep

OTHER_CPU = {**CPU, "cpu": "Imaginary 9001"}
DEVICES = "V"
"""The observation that compares devices, to which machines are alternatives."""
INT8: dict[str, Any] = {"compression": "int8", "reached": {"bits": 8}}
SPLITS: dict[str, Callable[[Row], bool]] = {
    "compression": lambda row: row.compression["name"] != "none",
    "compiler": lambda row: row.compiler["name"] != "untuned",
    "any": lambda row: int(row.id, 16) % 2 == 0,
}
"""Which rows of a sweep are on the other side."""


def facts(frame: pd.DataFrame) -> str:
    """Return a table without the columns in which the two ways differ."""
    return repr(frame.drop(columns=["machine", "machine_id", "task"], errors="ignore").to_dict("records"))


def compared(frame: pd.DataFrame, axis: str) -> str:
    comparison = compare(frame, axis)
    return repr(
        [
            [{value: found.row for value, found in group.rows.items()} for group in groups]
            for groups in (comparison.groups, comparison.unmatched)
        ]
    )


OF_FRAMES: dict[str, Callable[[pd.DataFrame], str]] = {
    "table": lambda frame: repr(ordered(merge_repeats(frame))["relative"].to_dict()),
    **{
        f"compare {axis}": lambda frame, axis=axis: compared(frame, axis)  # type: ignore[misc]
        for axis in ("model", "compression", "algorithm", "compiler", "batch")
    },
}
OF_POINTS: dict[str, Callable[[pd.DataFrame], str]] = {
    "winners": lambda points: repr(
        [(each.compiler, each.by_compression, each.by_primitive, each.overall) for each in standings(points)]
    ),
    "speed-ups": lambda points: facts(speedups(points)),
    "correlations": lambda points: facts(correlations(points)),
    "interactions": lambda points: repr(interactions(points)),
    "rankings": lambda points: repr(rankings(points)),
    "options": lambda points: repr(settings_by_part(points)),
    "pareto": lambda points: repr([pareto(points, cost).tolist() for cost in COSTS]),
    "observations": lambda points: repr(
        [found.claims for found in observe(Evidence(points)) if found.observation.number != DEVICES]
    ),
}
"""Analyses of points with roles."""


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[pd.DataFrame, pd.DataFrame]]:
    """Return a function that returns a sweep's table: one side trained, and one side of another machine."""
    rows = [again(each, device=CPU) for each in sweep(samples=5)]

    @functools.cache
    def frames(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        ways: list[dict[str, Any]] = [{"task": "training"}, {"device": OTHER_CPU}]
        tasks, machines = (
            read(write(tmp_path_factory.mktemp(name), [change(each, name, way) for each in rows]))
            for way in ways
        )
        assert tasks["task"].nunique() == machines["machine"].nunique() == 2
        return tasks, machines

    return frames


def change(row: Row, split: str, way: dict[str, Any]) -> Row:
    return again(row, **way) if SPLITS[split](row) else row


SIDES = ["any", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compression", "compiler"))]


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_a_task_separates_rows_as_a_machine_does(
    side: str, split: Callable[[str], tuple[pd.DataFrame, pd.DataFrame]]
) -> None:
    tasks, machines = split(side)
    for name, analysis in OF_FRAMES.items():
        assert analysis(tasks) == analysis(machines), name
    tasks, machines = with_roles(tasks), with_roles(machines)
    for name, analysis in OF_POINTS.items():
        assert analysis(tasks) == analysis(machines), name


def test_rows_of_one_task_would_be_compared(
    split: Callable[[str], tuple[pd.DataFrame, pd.DataFrame]],
) -> None:
    tasks = with_roles(split("any")[0])
    alike = tasks.assign(task="inference")
    for name in ("winners", "speed-ups", "pareto"):
        assert OF_POINTS[name](tasks) != OF_POINTS[name](alike), name


def test_sparse_training_has_no_break_even_with_dense_inference(tmp_path: Path) -> None:
    pruned = [
        row(
            ms,
            compression={"name": "weight_pruning", "level": level},
            reached={"ratio": level},
            algorithm="csr_direct",
            task="training",
        )
        for level, ms in ((0.5, 30), (0.9, 10))
    ]
    points = with_roles(read(write(tmp_path, [row(20), *pruned])))
    assert not curves(points) and curves(points.assign(task="inference"))


def test_repeats_of_two_tasks_are_not_merged(tmp_path: Path) -> None:
    folders = [write(tmp_path / task, [row(10, task=task)]) for task in ("inference", "training")]
    assert merge_repeats(read(folders))["runs"].tolist() == [1, 1]


def test_devices_are_compared_within_one_task(tmp_path: Path) -> None:
    rows = [
        row(ms, hardware=hardware, task=task, **of)
        for hardware, task in (("local_cpu", "inference"), ("xavier_gpu", "training"))
        for ms, of in ((10, {}), (5, INT8))
    ]
    mixed, alike = (
        read(write(tmp_path / name, made))
        for name, made in (("mixed", rows), ("alike", [again(each, task="inference") for each in rows]))
    )
    assert not compare(mixed, "hardware").groups and len(compare(alike, "hardware").groups) == 2
    gains = [
        next(
            finding
            for finding in observe(Evidence(with_roles(frame)))
            if finding.observation.number == DEVICES
        )
        for frame in (mixed, alike)
    ]
    assert [gain.claims[0].verdict for gain in gains] == ["not enough data", "does not hold"]


def both(folder: Path) -> Path:
    return write(folder, [row(30, compiler="torch_eager", task=task) for task in ("inference", "training")])


def test_what_needs_one_task_says_so(tmp_path: Path) -> None:
    folder = both(tmp_path / "rows")
    with pytest.raises(InputError, match="tasks are not compared: an inference and a training step"):
        dlas.compare(folder, axis="task")
    with pytest.raises(InputError, match=r"unknown axis 'tsk'.*there are: algorithm, batch"):
        dlas.compare(folder, axis="tsk")
    with pytest.raises(InputError, match=r'two tasks.*`where="task=inference"` or `where="task=training"`'):
        dlas.report(folder)
    assert not (folder / "report.html").exists()
    with pytest.raises(InputError, match=r"the fastest of what\?.*task: inference, training"):
        fastest_id(read(folder))


def test_a_table_names_the_task_where_it_varies_and_where_it_is_training(tmp_path: Path) -> None:
    folder = both(tmp_path / "rows")
    assert dlas.table(folder).frame["task"].tolist() == ["inference", "training"]
    shown = {where: str(dlas.table(folder, where=where)) for where in ("task=inference", "task=training")}
    assert "task training" in shown["task=training"] and "task inference" not in shown["task=inference"]


def test_layers_of_training_steps_choose_no_algorithm(tmp_path: Path) -> None:
    layers = [{"name": "conv", "algorithm": "direct", "latency_s": 1e-3}]
    rows = [row(10, algorithm=name, layers=layers, task="training") for name in ("direct", "gemm")]
    mixed = [again(rows[0], task="inference"), rows[1]]
    with pytest.raises(InputError, match="task inference, training; choose one"):
        layer_costs(read_rows(write(tmp_path, mixed)))


def test_a_training_row_is_not_deployed(tmp_path: Path) -> None:
    folder = both(tmp_path / "rows")
    trained = next(each for each in read_rows(folder) if each.task == "training")
    with pytest.raises(InputError, match="its task is training, and programs are deployed for inference"):
        deploy(folder, trained.id, to=tmp_path / "deployed")
    assert not (tmp_path / "deployed").exists()
