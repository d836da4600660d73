"""How wrong are predictors of subnetworks, how fast?  ``python -m benchmarks.subnets [TABLE.csv.xz ...]``.

Each device of the tables, a machine at a batch size, is predicted from few of its rows, the others held out:
by a sum of costs per stage, by the perceptron with the exact size, and by a line over multiply-adds.  Then
each machine is held out whole, and ten of its rows mix what the sums of others say.  Beside it stands a
perceptron that is fitted to the other machines, and reads their cores, memory and bandwidth.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

import dlas
from dlas.prediction.learning.metrics import score
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.predictors.additive import Additive
from dlas.prediction.predictors.flops import Flops
from dlas.prediction.predictors.mixture import Mixture
from dlas.prediction.predictors.subnet_mlp import SubnetMlp
from dlas.stack import Fitted, Predictor, Samples, Workspace

TABLES = (Path("tests/data/ofa_gpus.csv.xz"), Path("tests/data/ofa_note10.csv.xz"))
TARGET = "latency_s"
SIZES = (10, 20, 50, 400, 3500)
HELD = 1000
"""Most rows that predictors are tried on."""
TEN = 10
GPUS = {
    "RTX 2080 Ti": (4352, 11.0, 616.0),
    "Titan RTX": (4608, 24.0, 672.0),
    "Titan Xp": (3840, 12.0, 547.7),
    "Tesla V100": (5120, 16.0, 900.0),
}
"""Cores, GB of memory and GB a second of its bandwidth, as the makers state them."""
PER_MACHINE = 1000
"""Most rows of each machine that a perceptron for all of them is fitted to."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, default=TABLES, help="as `dlas import` reads them")
    parser.add_argument("--draws", type=int, default=5, help="samples of rows of each size")
    parser.add_argument("--epochs", type=int, default=100, help="of the perceptron")
    parser.add_argument("--settings", type=int, default=36, help="combinations that the perceptron tries")
    parser.add_argument(
        "--few", action=argparse.BooleanOptionalAction, default=True, help="devices by few of their rows"
    )
    given = parser.parse_args()
    perceptron = SubnetMlp(size="exact", epochs=given.epochs, settings=given.settings)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        known = []
        for place, table in enumerate(given.tables):
            rows = root / f"rows{place}"
            dlas.import_rows(table, rows)
            known.append((read_points([rows], TARGET), rows))
        if given.few:
            for points, _ in known:
                few_rows(points, given.draws, perceptron)
        others = held_out(known, given.draws, root)
        for points, _ in known:
            unseen(points, others, perceptron)


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


def median_error(predictor: Predictor, rows: Samples, size: int) -> float:
    """Return the median relative error on rows that were not among the first ``size``."""
    tried = rows.take(range(size, min(len(rows), size + HELD)))
    predicted = fitted_to(predictor, rows.take(range(size))).predict(tried)
    return float(np.median(np.abs(predicted / tried.target - 1)))


def rank(predictor: Predictor, rows: Samples, size: int) -> float:
    """Return the rank correlation on rows not among the first ``size``; 0 where all predictions are equal."""
    tried = rows.take(range(size, min(len(rows), size + HELD)))
    predicted = fitted_to(predictor, rows.take(range(size))).predict(tried)
    return float(stats.spearmanr(predicted, tried.target).statistic) if np.ptp(predicted) else 0.0


def held_out(tables: Sequence[tuple[Points, Path]], draws: int, folder: Path) -> dict[tuple[str, int], str]:
    """Print how machines that were held out whole are predicted from ten of their rows.

    Parameters
    ----------
    tables : sequence of (Points, Path)
        The rows of each table, and their folder.
    folder : Path
        For what is fitted.

    Returns
    -------
    dict
        The folders of what was fitted to the other machines, by device.
    """
    found: dict[tuple[str, int], Points] = {}
    sums: dict[tuple[str, int], Path] = {}
    for place, (points, rows) in enumerate(tables):
        for (machine, batch), own in devices(points).items():
            found[machine, batch] = own
            sums[machine, batch] = folder / f"sums{place}" / f"{len(sums)}"
            where = [f'machine == "{machine}" and batch == {batch}']
            asked = {"target": TARGET, "hold_out": "model/2", "where": where, "options": {"costs": "stage"}}
            dlas.fit("additive", rows, to=sums[machine, batch], **asked)  # type: ignore[arg-type]
    if len({machine for machine, _ in found}) < 2:
        return {}
    others = {
        (machine, batch): ",".join(str(path) for (name, _), path in sums.items() if name != machine)
        for machine, batch in found
    }
    most = min(3500, min(map(len, found.values())) // 2)
    print(f"\nSpearman's rank correlation, the machine held out, {TEN} of its rows, mean of {draws} draws\n")
    print(
        f"| device | mixture | its median error | additive, {TEN} rows | additive, {most} rows | flops |\n"
        f"|---|---|---|---|---|---|"
    )
    columns = []
    for (machine, batch), own in found.items():
        mixture = Mixture(others[machine, batch])
        tried: list[tuple[Predictor, int]] = [
            (mixture, TEN),
            (Additive("stage"), TEN),
            (Additive("stage"), most),
        ]
        ranks = [
            np.mean([rank(each, samples(own, each, seed), size) for seed in range(draws)])
            for each, size in [*tried, (Flops(), TEN)]
        ]
        error = np.mean([median_error(mixture, samples(own, mixture, seed), TEN) for seed in range(draws)])
        columns.append(ranks)
        first, *rest = (f"{value:.3f}" for value in ranks)
        print(f"| {machine}, batch {batch} | {' | '.join([first, f'{error:.1%}', *rest])} |", flush=True)
    first, *rest = (f"{value:.3f}" for value in np.mean(columns, axis=0))
    print(f"| mean | {' | '.join([first, '', *rest])} |")
    return others


def unseen(points: Points, others: Mapping[tuple[str, int], str], perceptron: SubnetMlp) -> None:
    """Print how wrong a perceptron of the other machines is, the paper's way and ours, beside the mixture."""
    facts = points.frame["machine"].astype(str).map(GPUS)
    if facts.isna().any():
        return
    names = ("hardware.cores", "hardware.memory_bytes", "hardware.bandwidth_bytes_s")
    told = {name: [each[place] for each in facts] for place, name in enumerate(names)}
    found = devices(replace(points, frame=points.frame.assign(**told)))
    print(f"\nRMSE / mean and rank correlation, the machine held out, {PER_MACHINE} rows of others at most\n")
    print("| device | 131 values as they are |  | logarithms, exact size |  | mixture |  |")
    print("|---|---|---|---|---|---|---|")
    papers = replace(perceptron, hardware="as is", target="as is", size="intervals")
    for (machine, batch), own in found.items():
        rest = [each for (name, size), each in found.items() if name != machine and size == batch]
        cells = []
        for part in (papers, replace(perceptron, hardware="log", target="log", size="exact")):
            known = joined([samples(each, part, 0) for each in rest])
            tried = samples(own, part, 0)
            cells.append(errors(fitted_to(part, known), tried.take(range(min(len(tried), HELD)))))
        mixture = Mixture(others[machine, batch])
        rows = samples(own, mixture, 0)
        tried = rows.take(range(TEN, min(len(rows), TEN + HELD)))
        cells.append(errors(fitted_to(mixture, rows.take(range(TEN))), tried))
        print(f"| {machine}, batch {batch} | {' | '.join(cells)} |", flush=True)


def joined(parts: Sequence[Samples]) -> Samples:
    """Return the first rows of several machines together."""
    few = [part.take(range(min(len(part), PER_MACHINE))) for part in parts]
    return replace(
        few[0],
        ids=tuple(name for part in few for name in part.ids),
        features=np.vstack([part.features for part in few]),
        target=np.concatenate([part.target for part in few]),
        groups=tuple(group for part in few for group in part.groups),
    )


def errors(fitted: Fitted, tried: Samples) -> str:
    """Return the root mean square error, relative to the mean, and the rank correlation, a cell each."""
    predicted = fitted.predict(tried)
    if not np.isfinite(predicted).all():
        return "diverged | "
    found = score(predicted, tried.target)
    return f"{found.rmse_of_mean:.1%} | {'' if found.spearman is None else f'{found.spearman:.3f}'}"


if __name__ == "__main__":
    main()
