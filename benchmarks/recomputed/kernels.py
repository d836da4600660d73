"""``experiments/kernels``."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from statistics import fmean
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import dlas
from benchmarks import kernel_predictions as benchmark
from benchmarks.recomputed.kept import (
    EXPERIMENTS,
    geometric_mean,
    lines,
    number_of_points,
    only,
    points,
    slow,
)
from benchmarks.recomputed.markdown import Value, numbers, tables
from dlas.analysis.matching import timed
from dlas.prediction.learning.fitting import Calibration, fit
from dlas.prediction.learning.points import Points, read_points
from dlas.stack import Predictor
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts

NETWORKS = ("networks", "networks-again")
DRAWN = ("rows", "again")
OTHERS = ("others",)
COLUMNS = (("onnxruntime", 1), ("hand", 1), ("torch_eager", 1), ("onnxruntime", 2))
"""Settings of the table of each network's errors."""
COMPRESSED = {
    ("int8", "onnxruntime"): ("onnxruntime", "library", "int8(calibration=none, images=2)"),
    ("int8", "hand"): ("hand", "spatial_pack", "int8(calibration=none, images=2)"),
    ("weight_pruning", "hand"): ("hand", "csr_spatial_pack", "weight_pruning(level=0.9, recipe=none)"),
    ("weight_pruning, random", "hand"): (
        "hand",
        "csr_spatial_pack",
        "weight_pruning(criterion=random, level=0.9, recipe=none)",
    ),
}
"""What the names in the table of compressed networks stand for."""


@cache
def _networks() -> tuple[Row, ...]:
    return tuple(read_rows(EXPERIMENTS / "kernels/networks"))


def shares(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return what share each class of kernels has of a network's time, and their sum over the network's."""
    asked = cells["compiler"], cells["network"], 1, 1
    (row,) = (
        row
        for row in _networks()
        if (row.compiler["name"], row.model["name"], row.batch, row.hardware["threads"]) == asked
    )
    found = benchmark.shares_of(row)
    assert found is not None
    own, ratio = found
    seen = {name: 100 * own[name] if own[name] >= benchmark.NOTICED else None for name in benchmark.SHOWN}
    return {**seen, "sum / whole": ratio}


@cache
def _settings(folders: tuple[str, ...]) -> dict[benchmark.Setting, Points]:
    paths = [EXPERIMENTS / "kernels" / folder for folder in folders]
    points = read_points(paths, benchmark.TARGET, kernels=True)
    return benchmark.beside_fewer_threads(points, benchmark.TARGET)


def _rows_of(text: str) -> list[list[Mapping[str, str]]]:
    return [list(table.rows) for table in tables(text)]


@cache
def _boosted() -> Predictor:
    made: Predictor = parts.make("predictor", "boosted_kernels", {})
    return made


@cache
def _of_kernels() -> tuple[list[Mapping[str, str]], dict[benchmark.Setting, tuple[Calibration, Calibration]]]:
    """Return the lines of the table of kernels held out, and how wide intervals are."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        calibrations = benchmark.print_kernels(_settings(DRAWN), _boosted(), benchmark.TARGET)
    (found,) = _rows_of(text.getvalue())
    return found, calibrations


@cache
def _of_others() -> list[Mapping[str, str]]:
    """Return the lines of the table of the thirty networks that nothing was tried on."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        benchmark.print_networks(
            _settings(DRAWN), _settings(OTHERS), benchmark.TARGET, _boosted(), _of_kernels()[1]
        )
    (found,) = _rows_of(text.getvalue())
    return found


@cache
def _of_networks() -> list[list[Mapping[str, str]]]:
    """Return the lines of the tables of networks, of each network and of points measured again."""
    drawn, measured, target = _settings(DRAWN), _settings(NETWORKS), benchmark.TARGET
    with contextlib.redirect_stdout(io.StringIO()) as text:
        fitted = benchmark.print_networks(drawn, measured, target, _boosted(), _of_kernels()[1])
        benchmark.print_worst(measured, fitted, target)
        paths = [EXPERIMENTS / "kernels" / folder for folder in NETWORKS]
        benchmark.print_generality(measured, paths, fitted, target)
    return _rows_of(text.getvalue())


def _line(rows: Sequence[Mapping[str, str]], **names: str) -> Mapping[str, str]:
    """Return the only line with these names."""
    (found,) = (row for row in rows if all(row[name] == value for name, value in names.items()))
    return found


def _values(row: Mapping[str, str], names: Collection[str]) -> dict[str, Value]:
    """Return the numbers of the cells that are no names."""
    found = {column: [_number(each) for each in numbers(cell)] for column, cell in row.items()}
    return {column: values for column, values in found.items() if column not in names}


def _number(written: str) -> float:
    return float(written.replace(",", ""))


@slow
def kernels(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return number, share and errors of kernels that were held out, and how many repeat."""
    names = {name: cells[name] for name in ("compiler", "threads", "kernels")}
    return _values(_line(_of_kernels()[0], **names), names)


@slow
def networks(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a setting's rows, noise floor and errors of networks never fitted."""
    names = {name: cells[name] for name in ("compiler", "threads")}
    return _values(_line(_of_networks()[0], **names), names)


@slow
def others(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return a setting's rows and errors of networks that nothing was tried on."""
    names = {name: cells[name] for name in ("compiler", "threads")}
    return _values(_line(_of_others(), **names), names)


@slow
def errors(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the errors of a network in each setting, at batches of 1 and 8."""
    found: list[Value] = []
    for compiler, threads in COLUMNS:
        names = {"compiler": compiler, "threads": str(threads), "network": cells["network"]}
        rows = [row for row in _of_networks()[1] if names.items() <= row.items()]
        told = [numbers(row[f"batch {batch}"]) for row in rows for batch in (1, 8)] or [[], []]
        found += [list(map(_number, each)) or None for each in told]
    return dict(zip(list(cells)[1:], found, strict=True))


def generality(choose: str, column: str, eager: str) -> float:
    """Return the least or largest error of points measured again, of eager mode or of the others."""
    chosen = [row for row in _of_networks()[2] if (row["compiler"] == "torch_eager") == (eager == "eager")]
    pick = min if choose == "min" else max
    return pick(_number(*numbers(row[column])) for row in chosen)


@cache
def unseen(drawn: tuple[str, ...], networks: str, seed: int = 0) -> dict[tuple[str, ...], float]:
    """Return the errors of networks in percent, from drawn ones alone, in the settings that both have.

    They are by compiler, algorithm, network, compression and batch; folders are below ``experiments/``.
    """
    target = benchmark.TARGET
    found: dict[tuple[str, ...], float] = {}
    known, measured = (
        read_points([EXPERIMENTS / folder for folder in folders], target, kernels=True).settings()
        for folders in (drawn, (networks,))
    )
    for setting in known.keys() & measured.keys():
        fitted, own = known[setting].merged(target), measured[setting].merged(target)
        tried = benchmark.samples_of(own, _boosted(), target)
        samples = benchmark.samples_of(fitted, _boosted(), target)
        boosted = fit(_boosted(), samples, seed, say=lambda line: None)
        errors = 100 * (boosted.predict(tried) / tried.target - 1)
        columns = ("compiler", "algorithm_name", "model_name", "compression", "batch")
        names = own.frame[list(columns)].astype(str).itertuples(index=False, name=None)
        found |= dict(zip(names, errors.tolist(), strict=True))
    return found


@slow
def transformers(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the errors of a network over tokens under each compiler, at batches of 1 and 8."""
    places = [("onnxruntime", "library"), ("hand", "spatial_pack")]
    asked = [(*place, cells["network"], "none", batch) for place in places for batch in "18"]
    found = unseen(("kernels/tokens",), "kernels/transformers")
    return {column: found.get(each) for column, each in zip(list(cells)[1:], asked, strict=True)}


@slow
def transformers_error(compiler: str) -> float:
    """Return the mean error of networks over tokens in percent."""
    every = unseen(("kernels/tokens",), "kernels/transformers").items()
    return fmean(abs(error) for names, error in every if names[0] == compiler)


@slow
def compressed(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the errors of a network as it is compressed and run, at batches of 1 and 8."""
    compiler, algorithm, compression = COMPRESSED[cells["compression"], cells["compiler"]]
    asked = [(compiler, algorithm, cells["network"], compression, batch) for batch in "18"]
    found = _of_compressed()
    return {f"batch {names[-1]}": found.get(names) for names in asked}


@slow
def compressed_error(compression: str) -> float:
    """Return the mean error of quantised networks, or of pruned ones, in percent."""
    every = _of_compressed().items()
    return fmean(abs(error) for names, error in every if names[3].startswith(compression))


def _of_compressed() -> dict[tuple[str, ...], float]:
    drawn = tuple(f"kernels/{folder}" for folder in (*DRAWN, "compressed"))
    return unseen(drawn, "kernels/compressed-networks")


def _device(run: str) -> pd.DataFrame:
    """Return the networks that a run of ``dlas fit-device`` never saw, predicted and measured."""
    folder = EXPERIMENTS / "kernels/fit-device" / run
    with TemporaryDirectory() as to:
        dlas.fit(
            "boosted_kernels",
            [folder / "rows", folder / "again"],
            target=benchmark.TARGET,
            hold_out=str(benchmark.HELD_OUT),
            seed=int(run) - 1,
            to=f"{to}/predictor",
        )
        return dlas.predict(f"{to}/predictor", folder / "unseen").frame


@slow
def device(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return what a run of ``dlas fit-device`` knows of five networks that it never saw."""
    found = _device(cells["run"])
    low, high = found["latency_low_s"], found["latency_high_s"]
    inside = found["measured"].between(low, high)
    return {
        "drawn": number_of_points(f"kernels/fit-device/{cells['run']}/rows"),
        "error": 100 * float((found["latency_s"] / found["measured"] - 1).abs().mean()),
        "covered": 100 * float(inside.mean()),
        "half-width": float(np.median(np.log(high / low)) / 2),
    }


def draws() -> float:
    """Return the number of networks and batches."""
    return len({(str(row.model), str(row.dataset), row.batch) for row in lines("kernels/rows")})


def number_of_kernels() -> float:
    """Return the number of kernels in all rows."""
    return sum(len(row.layers) for row in lines("kernels/rows"))


def sums(compiler: str, quantile: str) -> float:
    """Return a quantile of the ratio of kernels' sum and network's time, one thread."""
    found = [
        benchmark.shares_of(row)
        for row in _networks()
        if row.timed and row.compiler["name"] == compiler and row.hardware["threads"] == 1
    ]
    return float(np.quantile([each[1] for each in found if each is not None], float(quantile)))


def against_onnxruntime(folder: str, choose: str) -> float:
    """Return the least or largest speed of `hand` against ONNX Runtime, over networks and batches."""
    frame = only(points(f"kernels/{folder}"), threads=1)
    frame = frame[timed(frame)]
    pairs = only(frame, compiler_name="hand").merge(
        only(frame, compiler_name="onnxruntime"), on=["model", "dataset", "batch"]
    )
    return float(getattr(pairs["latency_s_y"] / pairs["latency_s_x"], choose)())


def between_machines(threads: str) -> float:
    """Return how many times as long the networks take as on the other machine, the geometric mean."""
    here, there = (
        frame[timed(frame)].set_index("id")
        for frame in (points("kernels/networks"), points("kernels/another-machine"))
    )
    own = here[here["threads"] == int(threads)]["latency_s"]
    both = own.index.intersection(there.index)
    return geometric_mean(own.loc[both] / there.loc[both, "latency_s"])
