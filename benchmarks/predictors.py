"""How wrong are predictors of training steps, and how fast?  ``python -m benchmarks.predictors``.

The rows are those of ``experiments/training-cost``.  Predictors are fitted to 20, 50 and 200 of them, drawn
from 13 of the 19 pruning levels, and predict the rows of the other six; and to three networks, to predict
three others.  Then single predictions and a batch of 100,000 are timed, features included.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import dlas
from dlas.prediction.learning.fitting import fit, values_of
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.learning.predictions import predict
from dlas.prediction.learning.splits import Criterion
from dlas.prediction.learning.stored import StoredPredictor, read
from dlas.stack import Operator, Predictor
from dlas.sweep.study import parts

ROWS = Path("experiments/training-cost/rows")
TARGETS = ("peak_memory_bytes", "latency_min_s")
PREDICTORS = ("additive", "corrected", "extra_trees", "nearest")
HELD_LEVELS = Criterion.parse("compression.level=0.1,0.25,0.4,0.55,0.7,0.85")
FITTED, TOLD = ("resnet18", "mobilenet_v2", "squeezenet1_0"), ("mnasnet1_0", "resnet50", "googlenet")
SIZES, DRAWS = (20, 50, 200), 10
MANY = 100_000
FAST = ("additive", "extra_trees", "corrected")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=DRAWS, help="samples of rows of each size")
    draws = parser.parse_args().draws
    chosen: dict[str, Predictor] = {name: parts.make("predictor", name, {}) for name in PREDICTORS}
    for target in TARGETS:
        points = read_points([ROWS], target)
        few_rows(points, target, chosen, draws)
        other_networks(points, target, chosen)
    speeds()


def few_rows(points: Points, target: str, chosen: dict[str, Predictor], draws: int) -> None:
    """Print the mean error on held-out levels by the number of rows that were fitted."""
    print(f"\n{target}: mean error on six levels that were held out, mean of {draws} draws of rows\n")
    print(f"| rows | {' | '.join(chosen)} |\n|---|{'---|' * len(chosen)}")
    held = np.isin(values_of(points, HELD_LEVELS), HELD_LEVELS.named)
    for size in SIZES:
        errors = []
        for seed in range(draws):
            drawn = np.random.default_rng(seed).choice(np.flatnonzero(~held), size, replace=False)
            errors.append([error(part, points, target, drawn, held) for part in chosen.values()])
        print(f"| {size} | {' | '.join(f'{value:.1%}' for value in np.mean(errors, axis=0))} |", flush=True)


def other_networks(points: Points, target: str, chosen: dict[str, Predictor]) -> None:
    """Print the mean error on networks that were never fitted (perf4sight, appendix B.3)."""
    print(f"\n{target}: fitted to {', '.join(FITTED)}\n")
    print(f"| network | {' | '.join(chosen)} |\n|---|{'---|' * len(chosen)}")
    model = points.frame["model"].astype(str).to_numpy()
    for name in TOLD:
        told = model == name
        fitted = np.flatnonzero(np.isin(model, FITTED))
        errors = [error(part, points, target, fitted, told) for part in chosen.values()]
        print(f"| {name} | {' | '.join(f'{value:.1%}' for value in errors)} |", flush=True)


def error(part: Predictor, points: Points, target: str, fitted: np.ndarray, held: np.ndarray) -> float:
    """Return the mean relative error on the rows held out of a predictor fitted to some others."""
    samples = points.samples(part, target, [""] * len(points))
    tried = samples.take(np.flatnonzero(held))
    predicted = fit(part, samples.take(fitted), say=lambda line: None).predict(tried)
    return float(np.mean(np.abs(predicted / tried.target - 1)))


def speeds() -> None:
    """Print how long one prediction takes, and how many a second a batch gives."""
    print("\n| predictor | one prediction, ms | predictions a second, 100,000 together |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name in FAST:
            folder = Path(scratch) / name
            dlas.fit(name, ROWS, target="latency_min_s", to=folder, hold_out="batch=128")
            stored = read(folder)
            single, many = planned(1), planned(MANY)
            predict(stored, single)
            one = min(seconds(stored, single) for _ in range(20))
            print(f"| {name} | {1e3 * one:.2f} | {MANY / seconds(stored, many):,.0f} |", flush=True)


def planned(count: int) -> Points:
    """Return points that were not measured: the networks of the rows at other batch sizes."""
    points = read_points([ROWS], "latency_min_s")
    by_network: dict[str | None, dict[int, Sequence[Operator]]] = {}
    for own, batch in zip(points.facts, points.frame["batch"], strict=True):
        by_network.setdefault(own.network, {})[batch] = own.operators[batch]
    first = points.take(np.flatnonzero(~points.frame.duplicated("network")))
    places = np.arange(count) % len(first)
    batches = np.arange(count) // len(first) % 256 + 2
    frame = first.frame.iloc[places].reset_index(drop=True).assign(batch=pd.array(batches, "Int64"))
    facts = [replace(own, operators=by_network[own.network]) for own in first.facts]
    return Points(frame, tuple(facts[place] for place in places), points.left_out)


def seconds(stored: StoredPredictor, points: Points) -> float:
    """Return how long predicting the points takes."""
    started = time.perf_counter()
    predict(stored, points)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
