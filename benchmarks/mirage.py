"""What boosted kernels know of the simulated board: kernels, networks never seen, and boards never measured.

    python -m benchmarks.mirage

Nothing here was measured: ``dlas/axes/hardware/simulation/law.py`` tells times and powers.

References
----------
MIRAGE, Tables 5, 7 and 8.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dlas.prediction.learning.features.devices import CLOCKS
from dlas.prediction.learning.fitting import cross_fit, fit, quiet
from dlas.prediction.learning.gains import TransferGain, gains
from dlas.prediction.learning.metrics import WITHIN, relative_errors
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.learning.splits import Criterion, folds
from dlas.prediction.predictors.boosted_kernels import BoostedKernels
from dlas.prediction.predictors.fitted.boosters import Booster
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.stack import Kernels, Samples
from dlas.stack.types import Floats

HOME = Path("experiments/mirage-simulated")
TIME, ENERGY = TARGETS = "latency_s", "energy_j"
PART = BoostedKernels()
CLOSE = 0.1
"""Relative error up to which a kernel counts as predicted."""
FEWEST = 50
"""Kernels of a kind that has a line of its own."""
NETWORKS = Criterion.parse("network/10")
BOARDS = Criterion.parse("device")
CLOCK_COLUMNS = tuple(f"device.{name}" for name in CLOCKS)
BOOSTING = {"max_depth": 6, "learning_rate": 0.05, "seed": 0}
ROUNDS = 300


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("rows", "networks", "boards"):
        parser.add_argument(f"--{name}", type=Path, default=HOME / name)
    given = parser.parse_args()
    drawn = read_points([given.rows], ENERGY, kernels=True)
    print("\n| kernels | number | time within 10 % | power within 10 % |\n|---|---|---|---|")
    for kind in kernel_scores(drawn):
        print(f"| {kind.name} | {kind.number:,} | {kind.time:.0%} | {kind.power:.0%} |", flush=True)
    print("\n| network | quantity | boosted_kernels | clocks only | work only |\n|---|---|---|---|---|")
    for name, target, errors in network_scores(drawn, read_points([given.networks], ENERGY, kernels=True)):
        cells = " | ".join(f"{error:.1%}" for error in errors.values())
        print(f"| {name} | {target} | {cells} |", flush=True)
    print("\n| quantity | comparisons | within 10 % | RMSE | mean error |\n|---|---|---|---|---|")
    for target in TARGETS:
        gain = board_gain(read_points([given.boards], target, kernels=True), target)
        ranges = (gain.within[WITHIN.index(CLOSE)], gain.rmse, gain.mae) if gain else ()
        told = " | ".join("" if each is None else f"{each[0]:+.1%} to {each[1]:+.1%}" for each in ranges)
        print(f"| {target} | {gain.comparisons if gain else 0} | {told} |", flush=True)


@dataclass(frozen=True)
class KernelScore:
    """How many kernels of a kind are predicted while their networks are held out."""

    name: str
    number: int
    time: float
    power: float
    """Shares whose relative error is at most :data:`CLOSE`."""


def kernel_scores(drawn: Points) -> list[KernelScore]:
    """Return the scores of each kind of kernels, the most frequent first, and of all (Table 5)."""
    tried = list(_held_out(drawn))
    kinds = np.concatenate([each.kinds for each, _, _ in tried])
    seconds, watts = (np.concatenate([found[place] for found in tried]) for place in (1, 2))
    names, counts = np.unique(kinds, return_counts=True)
    ranked = [str(names[place]) for place in np.argsort(-counts) if counts[place] >= FEWEST]
    return [_score(name, kinds == name, seconds, watts) for name in ranked] + [
        _score("all", np.ones(len(kinds), dtype=bool), seconds, watts)
    ]


def _score(name: str, chosen: npt.NDArray[np.bool_], seconds: Floats, watts: Floats) -> KernelScore:
    close = [float(np.mean(errors[chosen] <= CLOSE)) for errors in (seconds, watts)]
    return KernelScore(name, int(chosen.sum()), *close)


def _held_out(drawn: Points) -> Iterator[tuple[Kernels, Floats, Floats]]:
    """Yield the kernels of each tenth of the networks, and the errors of their times and of their powers."""
    groups = drawn.frame["network"].tolist()
    samples = drawn.samples(PART, ENERGY, groups)
    for fold in folds(NETWORKS, groups, 0):
        fitted = _fitted(samples.take(fold.fitted))
        kernels = samples.take(fold.tried).kernels
        assert kernels is not None and fitted.power is not None
        watts = fitted.power.of(kernels.with_columns(fitted.columns))
        yield (
            kernels,
            relative_errors(fitted.of_kernels(kernels), kernels.seconds),
            relative_errors(watts, kernels.joules / kernels.seconds),
        )


def network_scores(drawn: Points, networks: Points) -> Iterator[tuple[str, str, Mapping[str, float]]]:
    """Yield the mean errors of each network and of all at settings never measured (Table 7)."""
    known = set(map(tuple, _clocks(drawn)))
    new = networks.take(np.flatnonzero([tuple(clocks) not in known for clocks in _clocks(networks)]))
    models = new.frame["model"].astype(str).to_numpy()
    for target in TARGETS:
        measured = _samples(new, target).target
        errors = {
            name: relative_errors(predicted, measured)
            for name, predicted in predictions(drawn, new, target).items()
        }
        for model in (*sorted(set(models)), "all"):
            own = models == model if model != "all" else np.ones(len(models), dtype=bool)
            yield model, target, {name: float(each[own].mean()) for name, each in errors.items()}


def predictions(drawn: Points, networks: Points, target: str) -> dict[str, Floats]:
    """Return what is predicted of networks: of everything, of the clocks alone, of the work alone."""
    fitted, tried = _samples(drawn, target), _samples(networks, target)
    of_clocks = Booster.fitted(_clocks(drawn), np.log(fitted.target), ROUNDS, BOOSTING)
    return {
        "boosted_kernels": _fitted(fitted).predict(tried),
        "clocks only": np.exp(of_clocks.predict(_clocks(networks))),
        "work only": _fitted(_without_clocks(fitted)).predict(tried),
    }


def board_gain(boards: Points, target: str) -> TransferGain | None:
    """Return what fitting to all other boards gains over fitting to one (Table 8); None of too few rows."""
    samples, tried = cross_fit(PART, boards, target, BOARDS, say=quiet)
    found = gains(PART, samples, ["drawn"] * len(samples), tried, 0, quiet)
    return found[-1] if found else None


def _samples(points: Points, target: str) -> Samples:
    return points.samples(PART, target, points.frame["network"].tolist())


def _fitted(samples: Samples) -> KernelSum:
    found = fit(PART, samples, say=quiet)
    assert isinstance(found, KernelSum)
    return found


def _without_clocks(samples: Samples) -> Samples:
    assert samples.kernels is not None
    left = tuple(name for name in samples.kernels.columns if name not in CLOCK_COLUMNS)
    return replace(samples, kernels=samples.kernels.with_columns(left))


def _clocks(points: Points) -> Floats:
    """Return the clocks of each point; [n, 3]."""
    return np.array([[facts[name] for name in CLOCKS] for facts in points.devices()], dtype=np.float64)


if __name__ == "__main__":
    main()
