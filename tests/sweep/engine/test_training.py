"""Training as a task: the rows of a sweep, its check, and what is refused before it starts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dlas
from dlas.errors import InputError, WrongOutput
from dlas.stack import TrainingStep
from dlas.sweep.engine.checks import check_trainable
from dlas.sweep.engine.steps.check import check_training
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.limits import Limits
from dlas.sweep.study.point import Point
from dlas.sweep.study.selecting import select_points
from dlas.sweep.study.study import Study

TINY = {
    "dataset": "tests.fixtures.tiny:TinyDataset",
    "model": {"name": "tests.fixtures.tiny:TinyModel", "recipe": "none"},
}
QUICK = {"repeats": 2, "minimum": 2, "seconds": 0.1, "slices": 1, "sample_seconds": 1e-4}


def study(limits: dict[str, float] | None = None, **axes: Any) -> Study:
    return Study({**TINY, "task": "training", "batch": 4, **axes}, measure=QUICK, limits=limits)


def rows_of(folder: Path, made: Study) -> list[Row]:
    dlas.run(
        made, folder / "out", cache=folder / "cache", progress="silent", in_process=made.limits == Limits()
    )
    return list(read_rows(folder / "out"))


def test_a_sweep_times_training_steps_and_says_what_does_not_train(tmp_path: Path) -> None:
    made = study(
        task=["training", "inference"],
        compiler=["torch_eager", "untuned", "onnxruntime"],
        hardware={"name": "local_cpu", "threads": 1},
    )
    skip = [{"task": "inference", "compiler": ["untuned", "onnxruntime"], "reason": "shown elsewhere"}]
    rows = rows_of(tmp_path, Study(**{**made.written, "skip": skip}))
    by_point = {(row.task, row.compiler["name"]): row for row in rows}
    trained, inferred = (by_point[task, "torch_eager"] for task in ("training", "inference"))
    assert trained.status == inferred.status == "ok"
    assert len(trained.latency_s) == 2 and trained.id != inferred.id
    assert trained.error is None and trained.compiled_accuracy is None
    assert inferred.error is not None
    assert trained.macs == inferred.macs
    assert trained.artifacts == inferred.artifacts, "both tasks share network and build"
    for compiler in ("untuned", "onnxruntime"):
        other = by_point["training", compiler]
        assert other.status == "unsupported" and not other.seconds
        assert other.reason == f"{compiler} builds for inference only; torch_compile and torch_eager train"


@pytest.mark.slow
def test_a_step_that_runs_out_of_memory_is_a_row_that_says_so(tmp_path: Path) -> None:
    noise = {"name": "random", "size": 64, "images": 4, "classes": 4}
    # More than the build takes, which runs such a batch through the network, and less than training on it.
    limits: dict[str, float] = {"memory": 1_500_000_000}
    (row,) = rows_of(tmp_path, study(limits, dataset=noise, compiler="torch_eager", batch=768))
    assert (row.status, row.step) == ("failed", "memory")
    assert row.reason == "the step memory used more than the limit of 1.4 GiB of memory"


class Step(TrainingStep):
    """A step with a given loss, which adds a given amount to its only weight."""

    def __init__(self, loss: float, change: float) -> None:
        self.loss, self.change = loss, change
        self.values = np.ones(3, np.float32)

    def step(self) -> float:
        """Add the amount."""
        self.values += np.float32(self.change)
        return self.loss

    def weights(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the weight."""
        return {"conv.weight": self.values.copy()}


@pytest.mark.parametrize(
    ("loss", "change", "complaint"),
    [
        (math.nan, 0.1, "the loss of a training step is nan"),
        (math.inf, 0.1, "the loss of a training step is inf"),
        (2.5, math.nan, "conv.weight holds a number that is not finite"),
        (2.5, 0.0, "with loss 2.5 has changed no weight"),
    ],
)
def test_a_step_without_a_finite_loss_or_that_moves_no_weight_is_wrong(
    loss: float, change: float, complaint: str
) -> None:
    with pytest.raises(WrongOutput, match=complaint):
        check_training(Step(loss, change))


def test_a_step_that_trains_passes() -> None:
    assert check_training(Step(2.5, 1e-6)) == {"training_note": None}


def test_the_task_is_in_a_points_content_only_where_it_is_training() -> None:
    inference, training = study(task=["inference", "training"], compiler="torch_eager").points()
    assert "task" not in inference.content()
    assert training.content() == {**inference.content(), "task": "training"}
    assert [Point.of(point.content()) for point in (inference, training)] == [inference, training]
    assert str(training) == f"{inference} / training"
    (usual,) = Study({**TINY, "batch": 4, "compiler": "torch_eager"}).points()
    assert usual == inference


def test_one_image_is_refused_before_anything_is_written_where_batch_norm_needs_two(tmp_path: Path) -> None:
    small: dict[str, Any] = {
        "dataset": {"name": "random", "size": 8, "images": 4, "classes": 4},
        "compiler": "torch_eager",
    }
    made = study(**{**small, "model": {"name": "cifar_resnet18", "width": 0.125}, "batch": [1, 2]})
    with pytest.raises(InputError, match=r"model cifar_resnet18.*batch 1 on images 3x8x8.*batch 2 or more"):
        dlas.run(made, tmp_path / "out", progress="silent")
    assert not (tmp_path / "out").exists()
    check_trainable(point for point in made.points() if point.batch == 2)
    # A larger image leaves its last batch norm several places.
    check_trainable(study(**{**small, "model": "squeezenet1_0", "batch": 1}).points())


def test_an_unknown_task_is_one_message() -> None:
    message = r"unknown task 'trainig'; did you mean 'training'\? \(there are: inference, training\)"
    with pytest.raises(InputError, match=message):
        study(task="trainig")


def test_points_are_chosen_and_skipped_by_their_task() -> None:
    both = study(task=["inference", "training"], compiler="torch_eager")
    skipped = Study(**{**both.written, "skip": [{"task": "training", "reason": "later"}]})
    assert [point.task for point in skipped.points()] == ["inference"]
    for where in ("task=training", "task != 'inference'"):
        assert [point.task for point in select_points(both, [where])] == ["training"]
