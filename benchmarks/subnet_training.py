"""How do predictors of subnetworks learn, how fast?  ``python -m benchmarks.subnet_training ROWS...``.

The rows are those of one device.  It prints what "The OFA latency predictor" has in Figure 4 (a), the error
by epoch; in Figure 6, the seconds to measure rows and, with ``--table``, the blocks of a table; in Table 4,
the seconds to fit and, with ``--base``, to fine-tune; and in Table 5, the seconds of an estimate.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.subnets import TARGET, fitted_to, samples
from dlas.networks.subnets.written import draw
from dlas.prediction.adaptive.evolution.space import samples_of
from dlas.prediction.learning.metrics import score
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.fine_tuned import FineTuned
from dlas.prediction.predictors.lookup_table import LookupTable
from dlas.prediction.predictors.subnet_mlp import SubnetMlp
from dlas.stack import Fitted, Predictor, Samples
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study.point import Choice, Point

EPOCHS = (1, 2, 3, 5, 10, 20, 30, 50, 70, 100)
HELD_OUT = 0.15
CARRIED_OVER = 700
"""Rows to which a predictor of another device is fine-tuned."""
FEW = 50
ESTIMATES = 100_000


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rows", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, help="what `dlas blocks` wrote")
    parser.add_argument("--base", help="a `subnet_mlp` of another device, with the same --size")
    parser.add_argument("--size", choices=("exact", "intervals"), default="exact")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--settings", type=int, default=36, help="combinations that the perceptron tries")
    given = parser.parse_args()
    points = next(iter(read_points(given.rows, TARGET).settings().values())).merged(TARGET)
    perceptron = SubnetMlp(size=given.size, epochs=given.epochs, settings=given.settings)
    by_epoch(points, perceptron)
    measuring(given.rows, given.table)
    fitting(points, perceptron, given.base)
    estimates(points, perceptron, given.table, given.rows)


def rmse(fitted: Fitted, rows: Samples) -> str:
    """Return the root mean square error, relative to the mean."""
    predicted = fitted.predict(rows)
    return f"{score(predicted, rows.target).rmse_of_mean:.2%}" if np.isfinite(predicted).all() else "diverged"


def by_epoch(points: Points, perceptron: SubnetMlp) -> None:
    """Print the error on the rows that are fitted and on others, of logarithms and of milliseconds."""
    lines: dict[int, list[str]] = {}
    for way in ("log", "as is"):
        part = replace(perceptron, target=way)
        rows = samples(points, part, 0)
        known, tried = np.split(np.arange(len(rows)), [round((1 - HELD_OUT) * len(rows))])
        training = part.training(rows.take(known), 0)
        for epoch in (each for each in EPOCHS if each <= part.epochs):
            training.learner.advance(epoch)
            now = training.fitted()
            lines.setdefault(epoch, []).extend([rmse(now, rows.take(known)), rmse(now, rows.take(tried))])
    print(f"\nRMSE / mean by epoch, {len(known)} rows fitted and {len(tried)} held out\n")
    print(
        "| epoch | logarithms, fitted | held out | milliseconds, fitted | held out |\n|---|---|---|---|---|"
    )
    for epoch, cells in lines.items():
        print(f"| {epoch} | {' | '.join(cells)} |")


def measuring(folders: Sequence[Path], table: Path | None) -> None:
    """Print the seconds that rows took: of samples alone, as the paper counts, and of all steps."""
    print("\n| what | points | samples, s | all steps, s |\n|---|---|---|---|")
    spent = [_spent(row) for folder in folders for row in read_rows(folder) if row.timed]
    for count in sorted({FEW, CARRIED_OVER, len(spent)}):
        if count <= len(spent):
            print(f"| rows | {count:,} | {_sums(spent[:count])} |")
    if table is None:
        return
    for folder in sorted((table / "rows").iterdir()):
        blocks = [_spent(row) for row in read_rows(folder)]
        print(f"| table of size {folder.name} | {len(blocks):,} | {_sums(blocks)} |")


def _spent(row: Row) -> tuple[float, float]:
    """Return the seconds of a row's samples, and of all its steps."""
    steps = sum(spent for spent in row.seconds.values() if isinstance(spent, int | float))
    return sum(row.latency_s) * (row.calls_per_sample or 1), steps


def _sums(spent: Sequence[tuple[float, float]]) -> str:
    samples_s, steps_s = (sum(column) for column in zip(*spent, strict=True))
    return f"{samples_s:,.0f} | {steps_s:,.0f}"


def fitting(points: Points, perceptron: SubnetMlp, base: str | None) -> None:
    """Print the seconds to fit, one setting and the search among all, and to fine-tune."""
    tuned: dict[str, Predictor] = {}
    if base:
        tuned = {
            f"fine_tuned, {way}": FineTuned(base, target=way, size=perceptron.size)
            for way in ("log", "as is")
        }
    chosen: dict[str, Predictor] = {
        "additive": Additive("stage"),
        "subnet_mlp, 1 setting": replace(perceptron, settings=1),
        f"subnet_mlp, {perceptron.settings} settings": perceptron,
        **tuned,
    }
    print("\n| predictor | rows | fitting, s |\n|---|---|---|")
    for name, part in chosen.items():
        rows = samples(points, part, 0)
        count = min(len(rows), CARRIED_OVER) if name in tuned else len(rows)
        known = rows.take(range(count))
        print(f"| {name} | {count:,} | {_seconds(fitted_to, part, known):.2f} |", flush=True)


def estimates(points: Points, perceptron: SubnetMlp, table: Path | None, folders: Sequence[Path]) -> None:
    """Print the seconds of an estimate, alone and among many, features included; and of a measurement."""
    rng = np.random.default_rng(0)
    texts = [draw("ofa", rng) for _ in range(2000)]
    many = [_point(text) for text in itertools.islice(itertools.cycle(texts), ESTIMATES)]
    chosen: dict[str, Predictor] = {
        "additive": Additive("stage"),
        "subnet_mlp": replace(perceptron, epochs=1, settings=1),
    }
    if table is not None:
        chosen["lookup_table"] = LookupTable(str(table))
    print("\n| estimator | ms alone | estimates a second together |\n|---|---|---|")
    for name, part in chosen.items():
        fitted = fitted_to(part, samples(points, part, 0).take(range(FEW)))

        def estimate(asked: Sequence[Point], part: Predictor = part, known: Fitted = fitted) -> object:
            return known.predict(samples_of(part, TARGET, asked))

        alone = min(_seconds(estimate, many[place : place + 1]) for place in range(200))
        print(f"| {name} | {1e3 * alone:.2f} | {ESTIMATES / _seconds(estimate, many):,.0f} |")
    spent = [_spent(row)[1] for folder in folders for row in read_rows(folder) if row.timed]
    if any(spent):
        median = statistics.median(spent)
        print(f"| measurement | {1e3 * median:,.0f} | {1 / median:.2g} |")


def _seconds(call: Callable[..., object], *given: object) -> float:
    start = time.perf_counter()
    call(*given)
    return time.perf_counter() - start


def _point(text: str) -> Point:
    """Return the point of a subnetwork."""
    usual = {name: Choice(name) for name in ("none", "library", "onnxruntime", "local_cpu")}
    return Point(
        dataset=Choice("random", (("classes", 1000), ("size", 192))),
        model=Choice("ofa_mobilenet_v3", (("subnet", text), ("width", 1.2))),
        compression=usual["none"],
        algorithm=usual["library"],
        compiler=usual["onnxruntime"],
        hardware=usual["local_cpu"],
        batch=1,
        seed=0,
    )


if __name__ == "__main__":
    main()
