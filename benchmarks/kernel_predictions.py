"""Do predicted kernels add up to networks never seen?  ``python -m benchmarks.kernel_predictions``.

The rows are those of ``experiments/kernels``.  Predictors are fitted to the drawn networks, and predict the
eleven that nothing was fitted to.  It prints MIRAGE's tables: shares of kernels (Table 1), kernels held out
(Table 4) with the share of kernels that differ by at most 10 % when they are measured again, networks
(Table 6, Figure 4), the cost of generality (Figure 5), time to predict and to fit (Figures 6 and 7).  Other
folders are read by ``--drawn`` and ``--networks``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.prediction.adaptive.device.budget import MORE_SHARE
from dlas.prediction.learning.evaluation import CLOSE
from dlas.prediction.learning.fitting import (
    Calibration,
    calibrated,
    cross_fit,
    fit,
    predicted_kernels,
    quiet,
)
from dlas.prediction.learning.kernel_spread import SHORT_S
from dlas.prediction.learning.metrics import relative_errors, score
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import Points, read_points
from dlas.prediction.learning.settings import on_fewest_threads
from dlas.prediction.learning.splits import Criterion
from dlas.prediction.predictors.fitted.kernel_sums import KernelSum
from dlas.stack import Kernels, Layer, Predictor, Samples
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.layer_times import profile, timed_layers
from dlas.sweep.rows.operators import class_of
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.study import Study
from dlas.testing.kernels import match

HOME = Path("experiments/kernels")
STUDY = HOME / "networks.toml"
TARGET = "latency_s"
PREDICTORS = ("boosted_kernels", "additive", "nearest", "flops")
HELD_OUT = Criterion.parse("network/10")
SHOWN = (
    "conv",
    "conv1x1",
    "depthwise",
    "grouped",
    "linear",
    "norm",
    "pool",
    "elementwise",
    "concat",
    "other",
)
"""Classes of kernels, in the order of the columns."""
NOTICED = 0.005
"""The least share that is shown."""
KERNELS, MANY = 60, 100_000
"""Kernels of the network and of the batch whose predictions are timed."""
Array = npt.NDArray[Any]
Setting = tuple[str, int]
"""Compiler and threads."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--drawn", nargs="+", type=Path, default=[HOME / "rows", HOME / "again"])
    parser.add_argument(
        "--networks", nargs="+", type=Path, default=[HOME / "networks", HOME / "networks-again"]
    )
    parser.add_argument("--target", default=TARGET)
    parser.add_argument("--trials", type=int, default=0, help="of the search for XGBoost's options")
    parser.add_argument(
        "--told", action="store_true", help="also tell the kernels of the networks and match them"
    )
    given = parser.parse_args()
    print_shares([row for row in read_rows(given.networks[0]) if row.status == "ok"])
    if given.told:
        print_told(given.networks[0])
    drawn = beside_fewer_threads(read_points(given.drawn, given.target, kernels=True), given.target)
    measured = dict(settings(read_points(given.networks, given.target, kernels=True)))
    networks = {setting: points for setting, points in measured.items() if setting in drawn}
    boosted = parts.make("predictor", "boosted_kernels", {"trials": given.trials})
    calibrations = print_kernels(drawn, boosted, given.target)
    fitted = print_networks(drawn, networks, given.target, boosted, calibrations)
    print_quarters(drawn, networks, given.target, boosted)
    print_worst(networks, fitted, given.target)
    print_generality(networks, given.networks, fitted, given.target)
    print_speeds(drawn, fitted, given.target)


def settings(points: Points) -> Iterator[tuple[Setting, Points]]:
    """Yield the points of each compiler and number of threads."""
    for own in points.settings().values():
        yield (str(own.frame["compiler"].iloc[0]), int(own.frame["threads"].iloc[0])), own


def beside_fewer_threads(points: Points, target: str) -> dict[Setting, Points]:
    """Return the points of each setting, with those on fewer threads that a predictor learns from as well."""
    own = dict(settings(points))
    return {
        setting: replace(each, fewer_threads=on_fewest_threads(each, own.values(), target))
        for setting, each in own.items()
    }


def begin(setting: Setting) -> str:
    """Return the first cells of a line."""
    return f"| {setting[0]} | {setting[1]} |"


def samples_of(points: Points, part: Predictor, target: str) -> Samples:
    """Return the table that a predictor reads, a network a group."""
    samples = points.samples(part, target, points.frame["network"].tolist())
    if (fewer := points.fewer_threads) is None or part.level != "kernel":
        return samples
    return replace(samples, fewer_threads=samples_of(fewer, part, target))


def print_shares(rows: Sequence[Row]) -> None:
    """Print what share each class of kernels has of each network's time, one thread, batch 1 (Table 1)."""
    print(
        f"\n| compiler | network | {' | '.join(SHOWN)} | sum / whole |\n|---|---|{'---|' * (len(SHOWN) + 1)}"
    )
    for row in sorted(rows, key=lambda row: (row.compiler["name"], row.model["name"])):
        if row.batch != 1 or row.hardware.get("threads") != 1 or (found := shares_of(row)) is None:
            continue
        shares, ratio = found
        cells = " | ".join(f"{shares[name]:.0%}" if shares[name] >= NOTICED else "" for name in SHOWN)
        print(f"| {row.compiler['name']} | {row.model['name']} | {cells} | {ratio:.3f} |", flush=True)


def shares_of(row: Row) -> tuple[Mapping[str, float], float] | None:
    """Return the share of each class of a row's kernels, and their sum over the network's time."""
    if (told := profile(row)) is None:
        return None
    shares: defaultdict[str, float] = defaultdict(float)
    for layer, seconds in timed_layers(row):
        shares[class_of(layer)] += seconds / told.total_s
    return shares, told.profiled_s / told.latency_s


def print_told(folder: Path) -> None:
    """Print what share of the networks' time was told before they were built, the least by compiler."""
    with Session.open("forked") as session:
        made = session.plan(Study.of(STUDY), kernels=True).required()
    told = {each.row.id: each.kernels for each in made.points}
    shares: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in read_rows(folder):
        if row.status == "ok" and row.id in told:
            ran: list[Layer] = [{**layer, "latency_s": seconds} for layer, seconds in timed_layers(row)]
            shares[row.compiler["name"]].append((match(told[row.id], ran).share, row.model["name"]))
    print("\n| compiler | points | least share of time told | of |\n|---|---|---|---|")
    for name, own in shares.items():
        print(f"| {name} | {len(own)} | {min(own)[0]:.2%} | {min(own)[1]} |")


def print_kernels(
    drawn: Mapping[Setting, Points], part: Predictor, target: str
) -> dict[Setting, tuple[Calibration, Calibration]]:
    """Print the errors of kernels held out (Table 4).

    Returns
    -------
    dict of Setting to (Calibration, Calibration)
        How wide the intervals of networks are; and how wide one width for all would be.
    """
    print("\n| compiler | threads | kernels | number | share of time | mean error | within 10 % | again |")
    print("|---|---|---|---|---|---|---|---|")
    calibrations = {}
    for setting, points in drawn.items():
        repeated_kinds, before, after = measured_again(points)
        samples, tried = cross_fit(part, points.merged(target), target, HELD_OUT, say=lambda line: None)
        found = [each.kernels.timed() for each in tried if each.kernels is not None]
        kinds, predicted, measured = (
            np.concatenate([getattr(each, name) for each in found])
            for name in ("kinds", "predicted", "measured")
        )
        again, repeats = classes(repeated_kinds, before), relative_errors(before, after)
        for name, chosen in classes(kinds, measured).items():
            errors = relative_errors(predicted[chosen], measured[chosen])
            share = measured[chosen].sum() / measured.sum()
            floor = np.mean(repeats[again[name]] <= CLOSE) if again[name].any() else np.nan
            print(
                f"{begin(setting)} {name} | {len(errors):,} | {share:.0%} | {errors.mean():.1%} | "
                f"{np.mean(errors <= CLOSE):.0%} | {floor:.0%} of {again[name].sum()} |",
                flush=True,
            )
        without = [replace(each, kernels=None) for each in tried]
        calibrations[setting] = calibrated(samples, tried), calibrated(samples, without)
    return calibrations


def classes(kinds: Array, seconds: Array) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which kernels are long, long convolutions, other long ones, and short."""
    long, convolution = seconds >= SHORT_S, np.char.find(kinds, "conv") >= 0
    convolution |= np.isin(kinds, ("depthwise", "grouped"))
    return {
        "20 µs and longer": long,
        "of these, convolutions": long & convolution,
        "of these, others": long & ~convolution,
        "below 20 µs": ~long,
    }


def measured_again(points: Points) -> tuple[Array, Array, Array]:
    """Return the kinds of kernels in points of two folders, and their times in the first and the second."""
    found: list[tuple[str, float, float]] = []
    for _, own in points.frame.groupby("id", sort=False):
        if len(own) == 2:
            first, second = (points.facts[place].kernels for place in own.index)
            found += zip(first.kinds, first.seconds, second.seconds, strict=True)
    kinds, before, after = zip(*(each for each in found if each[1] > 0 and each[2] > 0), strict=True)
    return np.array(kinds), np.array(before), np.array(after)


def print_networks(
    drawn: Mapping[Setting, Points],
    networks: Mapping[Setting, Points],
    target: str,
    boosted: Predictor,
    calibrations: Mapping[Setting, tuple[Calibration, Calibration]],
) -> dict[Setting, KernelSum]:
    """Print the errors of networks never fitted (Table 6, Figure 4); return what was fitted.

    `half-width` is of the network in the middle, in logarithms, and `one` says how many intervals would cover
    and how wide they would be if all were as wide.
    """
    print(
        f"\n| compiler | threads | rows | floor | {' | '.join(PREDICTORS)} | within 10 % "
        "| covered | half-width | one: covered | one: half-width | sum |"
    )
    print("|---|---|---|---|" + "---|" * (len(PREDICTORS) + 6))
    kept = {}
    for setting, points in networks.items():
        floor, own = noise_floor(points.frame, target), points.merged(target)
        errors = {}
        for name in PREDICTORS:
            part = boosted if name == "boosted_kernels" else parts.make("predictor", name, {})
            fitted = fit(part, samples_of(drawn[setting].merged(target), part, target), say=lambda line: None)
            tried = samples_of(own, part, target)
            errors[name] = fitted.predict(tried)
            if part is boosted:
                assert isinstance(fitted, KernelSum)
                kept[setting], boosted_samples = fitted, tried
        measured = boosted_samples.target
        kernels, off = (
            predicted_kernels(kept[setting], boosted_samples),
            np.log(measured / errors["boosted_kernels"]),
        )
        widths = [each.of(kernels, len(measured)) for each in calibrations[setting]]
        scores = {name: score(guess, measured) for name, guess in errors.items()}
        plain = replace(kept[setting], factor=1.0, overhead=0.0).predict(boosted_samples)
        best = scores["boosted_kernels"]
        cells = " | ".join(f"{scores[name].mape:.1%}" for name in PREDICTORS)
        print(
            f"{begin(setting)} {best.rows} | {'' if floor is None else f'{floor:.1%}'} | {cells} | "
            f"{best.within[1]:.0%} | {' | '.join(_covering(off, each) for each in widths)} | "
            f"{relative_errors(plain, measured).mean():.1%} |",
            flush=True,
        )
    return kept


def _covering(off: Array, half_widths: Array | None) -> str:
    """Return how many intervals cover, and how wide they are in the middle."""
    if half_widths is None:
        return " | "
    return f"{np.mean(np.abs(off) <= half_widths):.0%} | {np.median(half_widths):.3f}"


def print_quarters(
    drawn: Mapping[Setting, Points], networks: Mapping[Setting, Points], target: str, part: Predictor
) -> None:
    """Print errors where all or a quarter of the drawn networks are known on more threads.

    `alone` is fitted to these, `beside` to all on fewer threads as well; of quarters it is a mean of three,
    and nothing where a quarter is too few to be fitted.
    """
    print("\n| compiler | threads | known | drawn, held out: alone | beside | networks: alone | beside |")
    print("|---|---|---|---|---|---|---|")
    for setting, points in drawn.items():
        if points.fewer_threads is None or setting not in networks:
            continue
        own, real = points.merged(target), samples_of(networks[setting].merged(target), part, target)
        for share, seeds in ((1.0, range(1)), (MORE_SHARE, range(3))):
            count = round(share * len(own))
            assert HELD_OUT.parts is not None
            if count * (1 - 1 / HELD_OUT.parts) < part.fewest:
                continue
            known = [
                own.take(np.sort(np.random.default_rng(seed).permutation(len(own))[:count])) for seed in seeds
            ]
            alone, beside = (
                np.mean(
                    [_errors(part, replace(each, fewer_threads=fewer), real, target) for each in known],
                    axis=0,
                )
                for fewer in (None, points.fewer_threads)
            )
            cells = " | ".join(f"{error:.1%}" for pair in zip(alone, beside, strict=True) for error in pair)
            print(f"{begin(setting)} {count} | {cells} |", flush=True)


def _errors(part: Predictor, known: Points, real: Samples, target: str) -> tuple[float, float]:
    """Return the mean error on points that are held out of fits, and on networks never fitted."""
    samples, tried = cross_fit(part, known, target, HELD_OUT, say=quiet)
    off = [relative_errors(each.predicted, samples.target[each.fold.tried]) for each in tried]
    guess = fit(part, samples, say=quiet).predict(real)
    return float(np.concatenate(off).mean()), float(relative_errors(guess, real.target).mean())


def print_worst(networks: Mapping[Setting, Points], fitted: Mapping[Setting, KernelSum], target: str) -> None:
    """Print each network's errors, and the kinds of kernels that make them."""
    print(
        "\n| compiler | threads | network | batch 1 | batch 8 | kernels that err most, share of the network |"
    )
    print("|---|---|---|---|---|---|")
    part = parts.make("predictor", "boosted_kernels", {})
    for setting, points in networks.items():
        own = points.merged(target)
        samples = samples_of(own, part, target)
        guess, kernels = fitted[setting].predict(samples), samples.kernels
        assert kernels is not None
        seconds = fitted[setting].of_kernels(kernels)
        for name, places in own.frame.groupby(own.frame["model"].astype(str)).indices.items():
            errors = {int(own.frame["batch"].iloc[at]): guess[at] / samples.target[at] - 1 for at in places}
            mine = np.isin(kernels.points, places)
            total = kernels.seconds[mine].sum()
            apart = (
                pd.Series(seconds[mine] - kernels.seconds[mine]).groupby(kernels.kinds[mine]).sum() / total
            )
            largest = apart.reindex(apart.abs().sort_values(ascending=False).index)[:3]
            told = ", ".join(f"{kind} {share:+.1%}" for kind, share in largest.items())
            cells = " | ".join(f"{errors[batch]:+.1%}" if batch in errors else "" for batch in (1, 8))
            print(f"{begin(setting)} {name} | {cells} | {told} |", flush=True)


def print_generality(
    networks: Mapping[Setting, Points],
    folders: Sequence[Path],
    fitted: Mapping[Setting, KernelSum],
    target: str,
) -> None:
    """Print the error of the kernels' sum beside that of the same network's own earlier rows (Figure 5).

    A predictor of one network alone knows each of its points here: batch sizes and threads are few.
    """
    print("\n| compiler | threads | measured again | kernels | the network's own |\n|---|---|---|---|---|")
    part = parts.make("predictor", "boosted_kernels", {})
    for setting, points in networks.items():
        again = points.take(np.flatnonzero(points.frame["folder"].eq(str(folders[-1]))))
        first = points.frame[points.frame["folder"].eq(str(folders[0]))].set_index("id")[target]
        known = again.take(np.flatnonzero(again.frame["id"].isin(first.index)))
        if not len(known):
            continue
        samples = samples_of(known, part, target)
        general = relative_errors(fitted[setting].predict(samples), samples.target).mean()
        own = relative_errors(first.loc[list(samples.ids)].to_numpy(), samples.target).mean()
        print(f"{begin(setting)} {len(known)} | {general:.1%} | {own:.1%} |", flush=True)


def print_speeds(drawn: Mapping[Setting, Points], fitted: Mapping[Setting, KernelSum], target: str) -> None:
    """Print how long predicting and fitting take, features included (Figures 6 and 7)."""
    print(
        "\n| compiler | threads | network of 60 kernels, ms | kernels a second | fit, s | with 40 trials, s |"
    )
    print("|---|---|---|---|---|---|")
    for setting, points in drawn.items():
        few, many = (repeated(points, count) for count in (1, MANY // KERNELS))
        read = from_files(fitted[setting])
        predict_s(few, read, target)
        single = statistics.median(predict_s(few, read, target) for _ in range(20))
        together = predict_s(many, read, target)
        own = points.merged(target)
        plain, searched = (fit_s(own, target, trials) for trials in (0, 40))
        print(
            f"{begin(setting)} {1e3 * single:.2f} | {MANY // KERNELS * KERNELS / together:,.0f} | "
            f"{plain:.1f} | {searched:.0f} |",
            flush=True,
        )


def from_files(fitted: KernelSum) -> KernelSum:
    """Return a predictor as it is read from its folder."""
    with TemporaryDirectory() as folder:
        fitted.save(Path(folder))
        return KernelSum.read(Path(folder))


def repeated(points: Points, count: int) -> Points:
    """Return so many points whose networks have 60 kernels, those that were measured one after another."""
    known = [own.kernels for own in points.facts]
    kinds, features, seconds = (
        np.concatenate([getattr(own, name) for own in known]) for name in ("kinds", "features", "seconds")
    )
    chosen = points.take(np.arange(count) % len(points))
    frame = chosen.frame.assign(id=[str(place) for place in range(count)])
    facts = []
    for place, own in enumerate(chosen.facts):
        at = np.arange(place * KERNELS, (place + 1) * KERNELS) % len(kinds)
        columns = own.kernels.columns
        kernels = Kernels(np.zeros(KERNELS, np.intp), kinds[at], columns, features[at], seconds[at])
        facts.append(replace(own, kernels=kernels))
    return replace(chosen, frame=frame, facts=tuple(facts))


def predict_s(points: Points, fitted: KernelSum, target: str) -> float:
    """Return how long predicting points takes whose kernels have their features."""
    part = parts.make("predictor", "boosted_kernels", {})
    started = time.perf_counter()
    fitted.predict(points.samples(part, target, [""] * len(points)))
    return time.perf_counter() - started


def fit_s(points: Points, target: str, trials: int) -> float:
    """Return how long fitting takes, with a search of so many trials for each kind of kernel."""
    part = parts.make("predictor", "boosted_kernels", {"trials": trials})
    samples = samples_of(points, part, target)
    started = time.perf_counter()
    fit(part, samples, say=lambda line: None)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
