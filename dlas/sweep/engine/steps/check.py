"""Compare a build with its network's reference function, or try a training step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.stats import binomtest

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.errors import WrongOutput
from dlas.stack import TRAINING, Images, Labels, Program, TrainingStep
from dlas.stack.array import BoolArray
from dlas.sweep.engine.steps.artifacts import load_artifact
from dlas.sweep.engine.steps.programs import load_program
from dlas.sweep.engine.steps.samples import fill_batch, load_batch, load_sample
from dlas.sweep.study.point import Point

CHECK_SECONDS = 60.0
"""Time limit of a check after its first batch, which may compile; a slow build is checked on fewer images."""
ERRORS_WIDE = NormalDist().inv_cdf(0.975)
"""Half of an interval of level 0.95, in standard errors."""


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
    build = load_artifact(cache, "build", build_key).facts
    tolerance = max(facts["tolerance"], build.get("tolerance", 0.0))
    if not error <= tolerance:  # a NaN is wrong too
        accepted = f"at most {tolerance:.3g} is accepted"
        raise WrongOutput(f"differs from the reference by {error:.3g} of its largest output; {accepted}")
    classes = compare_classes(outputs, expected, labels) if facts["accuracy"] is not None else None
    return {"error": error, "compiled_accuracy": classes}


def compare_classes(outputs: Images, expected: Images, labels: Labels) -> dict[str, float]:
    """Return how often a build's classes are right, and how often they are its network's.

    Parameters
    ----------
    outputs, expected : array [n, classes]
        Of the build and of its network, for the same images.
    labels : array [n]
    """
    chosen, own = outputs.argmax(axis=1), expected.argmax(axis=1)
    accuracy, low, high = _share(chosen == labels)
    agreement, agreement_low, agreement_high = _share(chosen == own)
    difference, difference_low, difference_high = paired_difference(chosen == labels, own == labels)
    return {
        "accuracy": accuracy,
        "low": low,
        "high": high,
        "images": len(outputs),
        "agreement": agreement,
        "agreement_low": agreement_low,
        "agreement_high": agreement_high,
        "difference": difference,
        "difference_low": difference_low,
        "difference_high": difference_high,
    }


def _share(true: BoolArray) -> tuple[float, float, float]:
    """Return the share of what is true, with its Wilson score interval of level 0.95."""
    count = int(true.sum())
    low, high = binomtest(count, len(true)).proportion_ci(method="wilson")
    return count / len(true), float(low), float(high)


def paired_difference(first: BoolArray, second: BoolArray) -> tuple[float, float, float]:
    """Return the share of what is true in ``first`` less that in ``second``, with its interval of level 0.95.

    Parameters
    ----------
    first, second : array of bool [n]
        Of the same items.

    References
    ----------
    D. G. Bonett and R. M. Price, "Adjusted Wald Confidence Interval for a Difference of Binomial
    Proportions Based on Paired Data", 2012: an item is added that only the first has, and one that only
    the second has, so that the interval has a width where all items agree.
    """
    size = len(first) + 2
    gained, lost = (int((one & ~other).sum()) + 1 for one, other in ((first, second), (second, first)))
    middle = (gained - lost) / size
    wide = ERRORS_WIDE * math.sqrt(((gained + lost) / size - middle**2) / size)
    return (gained - lost) / len(first), max(middle - wide, -1.0), min(middle + wide, 1.0)


def run_in_batches(
    program: Program, images: Images, batch: int, clock: Callable[[], float] = time.monotonic
) -> Images:
    """Return the outputs for as many images as time allows, with a fixed batch size.

    Parameters
    ----------
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
