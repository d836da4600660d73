"""Compare a build with its network's reference function, or try a training step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from dlas.engine.steps.artifacts import load_artifact
from dlas.engine.steps.programs import load_program
from dlas.engine.steps.samples import fill_batch, load_batch, load_sample
from dlas.errors import WrongOutput
from dlas.processes.interface import Channel
from dlas.stack import TRAINING, Images, Program, TrainingStep
from dlas.store.cache import Cache
from dlas.study.point import Point

CHECK_SECONDS = 60.0
"""Time limit of a check after its first batch, which may compile; a slow build is checked on fewer images."""


def run(
    content: dict[str, Any], root: str, network_key: str, build_key: str, channel: Channel
) -> dict[str, Any]:
    """Compare the build with the network's reference function, and compute its accuracy.

    A training point's build is tried for a step instead.
    """
    cache, point = Cache(Path(root)), Point.of(content)
    if point.task == TRAINING:
        images, labels = load_batch(cache, network_key, point)
        return check_training(load_program(cache, network_key, build_key, point).training(images, labels))
    sample = load_sample(cache, network_key)
    program = load_program(cache, network_key, build_key, point)
    outputs = run_in_batches(program, sample["images"], point.batch)
    expected, labels = sample["outputs"][: len(outputs)], sample["labels"][: len(outputs)]
    facts = load_artifact(cache, "network", network_key).facts
    scale = float(np.abs(expected).max()) or 1.0
    error = float(np.abs(outputs - expected).max()) / scale
    if not error <= facts["tolerance"]:  # a NaN is wrong too
        accepted = f"at most {facts['tolerance']:.3g} is accepted"
        raise WrongOutput(f"differs from the reference by {error:.3g} of its largest output; {accepted}")
    accuracy = None
    if facts["accuracy"] is not None:
        right = int((outputs.argmax(axis=1) == labels).sum())
        low, high = binomtest(right, len(outputs)).proportion_ci(method="wilson")
        share = right / len(outputs)
        accuracy = {"accuracy": share, "low": float(low), "high": float(high), "images": len(outputs)}
    return {"error": error, "compiled_accuracy": accuracy}


def run_in_batches(
    program: Program, images: Images, batch: int, clock: Callable[[], float] = time.monotonic
) -> Images:
    """Return the outputs for as many images as time allows, with a fixed batch size.

    Parameters
    ----------
    program : Program
    images : array [n, c, h, w]
    batch : int
        Images that the program takes at a time.
    clock : callable
        Returns seconds.

    Returns
    -------
    array
        Outputs of all images, or of the first ones, those done within
        :data:`CHECK_SECONDS` after the first batch.
    """
    outputs: list[Images] = []
    end = math.inf
    for start in range(0, len(images), batch):
        chunk = images[start : start + batch]
        outputs.append(program.run(fill_batch(chunk, batch))[: len(chunk)])
        if not start:
            end = clock() + CHECK_SECONDS
        elif clock() > end:
            break
    return np.concatenate(outputs)


def check_training(training: TrainingStep) -> dict[str, Any]:
    """Train one step; return what the row should remark.

    Raises
    ------
    WrongOutput
        If the loss or a weight is no finite number afterwards, or no weight has changed.
    """
    before = training.weights()
    loss = training.step()
    if not math.isfinite(loss):
        raise WrongOutput(f"the loss of a training step is {loss}")
    after = training.weights()
    broken = next((name for name, values in after.items() if not np.isfinite(values).all()), None)
    if broken is not None:
        raise WrongOutput(f"after a training step, {broken} holds a number that is not finite")
    if all(np.array_equal(values, after[name]) for name, values in before.items()):
        raise WrongOutput(f"a training step with loss {loss:.4g} has changed no weight")
    return {"training_note": training.note}
