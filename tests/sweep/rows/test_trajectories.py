"""Curves of compression in rows: each training once, and the level to choose."""

from __future__ import annotations

from typing import Any

import pytest

from dlas.sweep.rows.labels import label
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.trajectories import START, Trajectories, Trajectory, called, fine_tuning_seconds
from tests.fixtures.rows import row
from tests.fixtures.sweeps import curve

LEVELS = [0.5, 0.9, 0.95]


def pruned(level: float | str, steps: list[dict[str, Any]], at: float | None = None, **given: Any) -> Row:
    """Return a row of a pruned network: the level asked for, its curve, and the level it stands for."""
    own = next(step for step in steps if step["level"] == (level if at is None else at))
    reached = {"level": own["level"], "units": own["ratio"], "ratio": own["ratio"], "curve": steps}
    options = given.pop("options", {})
    return row(
        compression={"name": "weight_pruning", "level": level, **options},
        accuracy=own["accuracy"],
        reached=reached,
        **given,
    )


def found_in(*rows: Row) -> list[Trajectory]:
    trajectories = Trajectories()
    for line, each in enumerate(rows):
        trajectories.add(each, line, label(each.dataset), label(each.model))
    return trajectories.trainings


def test_rows_of_one_training_are_one_trajectory() -> None:
    steps = curve(LEVELS, 0.98, 0.95)
    between = [*steps[:3], {**steps[3], "level": 0.93, "ratio": 0.93}]
    (found,) = found_in(
        pruned(0.9, steps[:3], algorithm="gemm"),
        pruned(0.9, steps[:3]),
        pruned(0.95, steps),
        row(),
        pruned("elbow", steps, at=0.9),
        pruned(0.93, between),
    )
    assert [place[0] for place, _ in found.ordered] == [0, 0.5, 0.9, 0.93, 0.95]
    assert found.name == found.technique == "weight_pruning" and found.network[2] == 0
    assert found.lines == {(0.9, 0.9): 4, (0.95, 0.95): 2, (0.93, 0.93): 5} and found.elbows == {(0.9, 0.9)}


def test_other_networks_options_and_trainings_stand_apart() -> None:
    steps, again = curve(LEVELS, 0.98, 0.95), curve(LEVELS, 0.98, 0.94)
    found = found_in(
        pruned(0.95, steps),
        pruned(0.95, steps, model="m"),
        pruned(0.95, steps, seed=1),
        pruned(0.95, again),
        pruned(0.95, steps, options={"criterion": "taylor"}),
        pruned("elbow", steps, 0.5, options={"tolerance": 0.1}),
    )
    assert len(found) == 5 and found[0].elbows == {(0.5, 0.5)}
    assert called(found) == {name: name for name in ("weight_pruning", "weight_pruning(criterion=taylor)")}
    assert called(found[:4]) == {"weight_pruning": "weight_pruning"}


def test_a_row_without_a_curve_is_a_step_of_its_own() -> None:
    (found,) = found_in(
        row(compression={"name": "p", "level": 0.5}, reached={"ratio": 0.4}, accuracy=0.9),
        row(compression={"name": "p", "level": 0.9}, reached={"ratio": 0.8}, accuracy=0.8),
        row(compression={"name": "p", "level": 0.99}, reached={"ratio": 0.99}, accuracy=None),
        row(compression="int8", reached={"bits": 8}, accuracy=0.9),
    )
    assert {place: step.accuracy for place, step in found.ordered} == {(0.5, 0.4): 0.9, (0.9, 0.8): 0.8}
    assert found_in(row(reached={}), row(compression="q", reached={})) == []


def test_what_follows_pruning_in_a_chain_is_no_step() -> None:
    steps = curve(LEVELS, 0.98, 0.95)
    link = {"name": "weight_pruning", "level": 0.95}
    chain = {"name": "chain", "chain": [link, {"name": "int8"}]}
    reached = {"level": 0.95, "ratio": 0.95, "curve": steps, "bits": 8}
    (found,) = found_in(pruned(0.95, steps), row(compression=chain, reached=reached, accuracy=0.1))
    assert found.steps[0.95, 0.95].accuracy == 0.95 and found.lines[0.95, 0.95] == 0
    two = {"name": "chain", "chain": [link, {"name": "channel_pruning", "level": 0.1}]}
    (other,) = found_in(row(compression=two, reached=reached, accuracy=0.1))
    assert other.technique == "weight_pruning(level=0.95)+channel_pruning"
    assert other.name == "weight_pruning+channel_pruning"


def test_the_elbow_is_chosen_or_else_what_validation_images_allow() -> None:
    steps = curve([0.5, 0.9, 0.95, 0.99], 0.98, 0.94)
    assert found_in(pruned(0.99, steps))[0].chosen() == ((0.5, 0.5), "within 1 point")
    for step in steps:
        step["validation_accuracy"] = 0.98 if step["level"] != 0.9 else 0.5
    # The last one within a point counts, as the elbow of the technique itself does.
    assert found_in(pruned(0.99, steps))[0].chosen() == ((0.99, 0.99), "within 1 point")
    assert found_in(pruned("elbow", steps, at=0.9))[0].chosen() == ((0.9, 0.9), "elbow")
    fallen = curve([0.5, 0.9], 0.98, 0.5)
    assert found_in(pruned(0.9, fallen))[0].chosen() == (None, "every level loses over 1 point")
    one = row(compression={"name": "p", "level": 0.5}, reached={"ratio": 0.4}, accuracy=0.9)
    assert found_in(one)[0].chosen() == ((0.5, 0.4), "only level")
    for step in fallen:
        step["validation_accuracy"] = None
    assert found_in(pruned(0.9, fallen))[0].chosen() == (None, "no validation accuracy")
    assert found_in(pruned("elbow", steps, at=0.0))[0].chosen() == (START, "elbow")


def test_time_includes_all_milestones() -> None:
    assert fine_tuning_seconds(pruned(0.9, curve([0.5, 0.9], 0.98, 0.9)).reached) == pytest.approx(20)
    assert fine_tuning_seconds(row().reached) is None
