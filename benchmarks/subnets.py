"""How wrong are predictors of subnetworks, how fast?  ``python -m benchmarks.subnets [TABLE.csv.xz ...]``.

Each device of the tables, a machine at a batch size, is predicted from few of its rows, the others held out:
by a sum of costs per stage, by the perceptron with the exact size, and by a line over multiply-adds.  Then
each machine is held out whole, and ten of its rows mix what the sums of others say.  Estimates are timed.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

import dlas
from dlas.learning.candidates import samples_of
from dlas.learning.points import Points, read_points
from dlas.networks.subnets.written import draw
from dlas.predictors.additive import Additive
from dlas.predictors.flops import Flops
from dlas.predictors.mixture import Mixture
from dlas.predictors.subnet_mlp import SubnetMlp
from dlas.stack import Fitted, Predictor, Samples, Workspace
from dlas.study.point import Choice, Point

TABLES = (Path("tests/data/ofa_gpus.csv.xz"), Path("tests/data/ofa_note10.csv.xz"))
TARGET = "latency_s"
SIZES = (10, 20, 50, 400, 3500)
HELD = 1000
"""Most rows that predictors are tried on."""
TEN = 10
ESTIMATES = 100_000


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, default=TABLES, help="as `dlas import` reads them")
    parser.add_argument("--draws", type=int, default=5, help="samples of rows of each size")
    parser.add_argument("--epochs", type=int, default=100, help="of the perceptron")
    parser.add_argument("--settings", type=int, default=36, help="combinations that the perceptron tries")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for place, table in enumerate(given.tables):
            dlas.import_rows(table, root / f"rows{place}")
            points = read_points([root / f"rows{place}"], TARGET)
            few_rows(
                points, given.draws, SubnetMlp(size="exact", epochs=given.epochs, settings=given.settings)
            )
            held_out(points, given.draws, root / f"rows{place}", root / f"sums{place}")
        speeds(read_points([root / "rows0"], TARGET))


def devices(points: Points) -> dict[tuple[str, int], Points]:
    """Return the rows of each machine and batch size."""
    keys = list(zip(points.frame["machine"].astype(str), points.frame["batch"].astype(int), strict=True))
    return {
        key: points.take(np.array([place for place, own in enumerate(keys) if own == key]))
        for key in sorted(set(keys))
    }


def samples(points: Points, predictor: Predictor, seed: int) -> Samples:
    """Return the rows in random order, each subnetwork a group."""
    found = points.samples(predictor, TARGET, points.frame["model"].tolist())
    return found.take(np.random.default_rng(seed).permutation(len(found)))


def few_rows(points: Points, draws: int, perceptron: Predictor) -> None:
    """Print the root mean square error, relative to the mean, by the number of rows that were fitted."""
    chosen: dict[str, Predictor] = {"additive": Additive("stage"), "subnet_mlp": perceptron, "flops": Flops()}
    print(f"\nRMSE / mean on rows that were held out, mean of {draws} draws (one of subnet_mlp)\n")
    print(f"| device | rows | {' | '.join(chosen)} |\n|---|---|{'---|' * len(chosen)}")
    for (machine, batch), own in devices(points).items():
        for size in (size for size in SIZES if size < len(own)):
            cells = []
            for name, predictor in chosen.items():
                seeds = range(1 if name == "subnet_mlp" else draws)
                too_few = size < (50 if name == "subnet_mlp" else predictor.fewest // 2)
                errors = (
                    []
                    if too_few
                    else [rmse(predictor, samples(own, predictor, seed), size) for seed in seeds]
                )
                cells.append(f"{np.mean(errors):.2%}" if errors else "")
            print(f"| {machine}, batch {batch} | {size} | {' | '.join(cells)} |", flush=True)


def fitted_to(predictor: Predictor, rows: Samples) -> Fitted:
    """Return a predictor fitted to rows."""
    with tempfile.TemporaryDirectory() as folder:
        return predictor.fit(rows, Workspace(0, Path(folder), lambda line: None))


def rmse(predictor: Predictor, rows: Samples, size: int) -> float:
    """Return the error on rows that were not among the first ``size``."""
    tried = rows.take(range(size, min(len(rows), size + HELD)))
    errors = fitted_to(predictor, rows.take(range(size))).predict(tried) - tried.target
    return float(np.sqrt(np.mean(errors**2)) / tried.target.mean())


def rank(predictor: Predictor, rows: Samples, size: int) -> float:
    """Return the rank correlation on rows not among the first ``size``; 0 where all predictions are equal."""
    tried = rows.take(range(size, min(len(rows), size + HELD)))
    predicted = fitted_to(predictor, rows.take(range(size))).predict(tried)
    return float(stats.spearmanr(predicted, tried.target).statistic) if np.ptp(predicted) else 0.0


def held_out(points: Points, draws: int, rows: Path, sums: Path) -> None:
    """Print rank correlations on machines that were held out whole, from ten of their rows."""
    found = devices(points)
    machines = sorted({machine for machine, _ in found})
    if len(machines) < 2:
        return
    for place, (machine, batch) in enumerate(found):
        where = [f'machine == "{machine}" and batch == {batch}']
        options = {"costs": "stage"}
        asked = {"target": TARGET, "hold_out": "model/2", "where": where, "options": options}
        dlas.fit("additive", rows, to=sums / str(place), **asked)  # type: ignore[arg-type]
    most = min(3500, min(map(len, found.values())) // 2)
    print(f"\nSpearman's rank correlation, the machine held out, {TEN} of its rows, mean of {draws} draws\n")
    print(
        f"| device | mixture | additive, {TEN} rows | additive, {most} rows | flops |\n|---|---|---|---|---|"
    )
    columns = []
    for (machine, batch), own in found.items():
        others = [str(sums / str(place)) for place, (name, _) in enumerate(found) if name != machine]
        tried: list[tuple[Predictor, int]] = [
            (Mixture(",".join(others)), TEN),
            (Additive("stage"), TEN),
            (Additive("stage"), most),
            (Flops(), TEN),
        ]
        ranks = [
            np.mean([rank(each, samples(own, each, seed), size) for seed in range(draws)])
            for each, size in tried
        ]
        columns.append(ranks)
        print(f"| {machine}, batch {batch} | {' | '.join(f'{value:.3f}' for value in ranks)} |", flush=True)
    print(f"| mean | {' | '.join(f'{value:.3f}' for value in np.mean(columns, axis=0))} |")


def speeds(points: Points) -> None:
    """Print the seconds of an estimate, alone and among many, features included."""
    own = next(iter(devices(points).values()))
    rng = np.random.default_rng(0)
    texts = [draw("ofa", rng) for _ in range(2000)]
    many = [_point(text) for text in itertools.islice(itertools.cycle(texts), ESTIMATES)]
    print("\n| predictor | ms alone | estimates a second together |\n|---|---|---|")
    perceptron = SubnetMlp(size="exact", epochs=1, settings=1)
    for name, predictor in {"additive": Additive("stage"), "subnet_mlp": perceptron}.items():
        fitted = fitted_to(predictor, samples(own, predictor, 0).take(range(50)))

        def estimate(chosen: Sequence[Point], part: Predictor = predictor, known: Fitted = fitted) -> object:
            return known.predict(samples_of(part, TARGET, chosen))

        alone = min(_seconds(estimate, many[place : place + 1]) for place in range(200))
        print(f"| {name} | {1e3 * alone:.2f} | {ESTIMATES / _seconds(estimate, many):,.0f} |")


def _seconds(call: Callable[[Sequence[Point]], object], points: Sequence[Point]) -> float:
    start = time.perf_counter()
    call(points)
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
