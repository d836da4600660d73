"""Ten latencies of a device of which nothing else is known: cells of NAS-Bench-201, as HELP predicts them.

    python -m benchmarks.cells FOLDER [--to TABLE.csv.xz] [--cells 300]

``FOLDER`` is a checkout of HELP, whose files hold the latencies of 15,625 cells on a device each.  Nine
devices are fitted with 900 cells each, and six others, of other kinds too, are predicted from ten cells: ten
draws, all other cells predicted.  A cell is told by eleven costs of its own, not by what a network of it
computes.  ``--to`` writes the latencies of some cells as a table that ``dlas import`` reads.  The files are
pickles, of which numbers, texts, lists and dictionaries are read, and anything else is refused.

References
----------
H. Lee et al., "HELP: Hardware-Adaptive Efficient Latency Prediction for NAS via Meta-Learning", 2021.
X. Dong and Y. Yang, "NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search", 2020.
"""

from __future__ import annotations

import lzma
import pickle
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer
from rich.console import Console
from rich.table import Table
from scipy import stats

import dlas
from dlas.errors import InputError
from dlas.prediction.learning.points import read_points
from dlas.prediction.predictors.mixture import Mixture
from dlas.stack import Samples, Workspace
from dlas.stack.types import Floats

FITTED = (
    *("1080ti_1", "1080ti_32", "1080ti_256", "silver_4114", "silver_4210r"),
    *("samsung_a50", "pixel3", "essential_ph_1", "samsung_s7"),
)
PREDICTED = ("titan_rtx_256", "gold_6226", "fpga", "pixel2", "raspi4", "eyeriss")
OPERATIONS = ("skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3")
EDGES = ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
"""From and to the nodes of a cell, in the order in which a cell's text names their operations."""
NODES = 4
TEN, DRAWS, OF_EACH = 10, 10, 900
TARGET = "latency_s"
MOST_BYTES = 64 << 20


def main(
    folder: Annotated[Path, typer.Argument(help="A checkout of HELP.")],
    to: Annotated[Path | None, typer.Option(help="Write a table of some cells on all these devices.")] = None,
    cells: Annotated[int, typer.Option(help="Cells of that table.")] = 300,
) -> None:
    """Print how well ten latencies tell the others, or write a table."""
    table = latencies(folder / "data" / "nasbench201")
    if to is not None:
        chosen = np.random.default_rng(0).choice(len(table), cells, replace=False)
        text = as_rows(table.iloc[np.sort(chosen)]).to_csv(index=False, float_format="%.6g")
        to.write_bytes(lzma.compress(text.encode(), preset=9))
        return
    with tempfile.TemporaryDirectory() as scratch:
        draw = np.random.default_rng(0)
        bases = [fitted_to(table, name, draw, Path(scratch)) for name in FITTED]
        printed = Table("device", "rank correlation", "median error", box=None)
        found = []
        for name in PREDICTED:
            found.append(predicted(table, name, ",".join(map(str, bases)), Path(scratch)))
            printed.add_row(name, f"{found[-1][0]:.3f}", f"{found[-1][1]:.1%}")
        rank, error = np.mean(found, axis=0)
        printed.add_row("mean", f"{rank:.3f}", f"{error:.1%}")
    Console().print(printed)


def latencies(folder: Path) -> pd.DataFrame:
    """Return the latency of each cell, a row, on each device, a column, in ms."""
    places = plain_values(folder / "str_arch2idx.pt")
    names = sorted(places, key=lambda name: int(places[name]))
    devices = {
        name: plain_values(folder / "latency" / f"{name}.pt") for name in dict.fromkeys((*FITTED, *PREDICTED))
    }
    return pd.DataFrame(devices, index=pd.Index(names, name="cell"), dtype=float)


def plain_values(path: Path) -> Any:
    """Return what PyTorch saved in a file, if it is made of numbers, texts, lists and dictionaries.

    Raises
    ------
    InputError
        If it is larger than such files are, no such file, or holds what only code makes.
    """
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise InputError(f"{path} has {size:,} bytes; at most {MOST_BYTES:,} are read")
        return torch.load(path, weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"{path} holds no plain values that PyTorch saved: {error}") from None


def features(cells: pd.Index) -> pd.DataFrame:
    """Return what each cell does: operations and additions on all its edges, and on those that count.

    An edge counts if it leads from the cell's input to its output.
    """
    named = [
        [edge.split("~")[0] for edge in cell.replace("+", "").split("|") if "~" in edge] for cell in cells
    ]
    done = np.array(
        [[OPERATIONS.index(name) + 1 if name in OPERATIONS else 0 for name in own] for own in named]
    )
    on = done > 0
    fed, read = np.zeros((2, len(cells), NODES), dtype=bool)
    fed[:, 0] = read[:, -1] = True
    for edge, (start, end) in enumerate(EDGES):
        fed[:, end] |= fed[:, start] & on[:, edge]
    for edge, (start, end) in reversed([*enumerate(EDGES)]):
        read[:, start] |= read[:, end] & on[:, edge]
    counting = np.column_stack([on[:, edge] & fed[:, a] & read[:, b] for edge, (a, b) in enumerate(EDGES)])
    found: dict[str, Any] = {}
    for kind, edges in (("all", on), ("counting", counting)):
        for place, name in enumerate(OPERATIONS, 1):
            found[f"feature.{kind}_{name}"] = ((done == place) & edges).sum(axis=1)
        into = [
            sum(edges[:, edge].astype(int) for edge, (_, b) in enumerate(EDGES) if b == node)
            for node in (1, 2, 3)
        ]
        found[f"feature.{kind}_additions"] = sum(np.maximum(count - 1, 0) for count in into)
    return pd.DataFrame({**found, "feature.network": 1}, index=cells)


def as_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as ``dlas import`` reads it: a row for each cell and device."""
    long = table.rename_axis("model.cell").reset_index()
    long = long.melt("model.cell", var_name="machine", value_name="latency_ms")
    told = features(table.index).reindex(long["model.cell"]).reset_index(drop=True)
    names = {"dataset_name": "cifar10", "model_name": "nasbench201", "compiler_name": "unknown"}
    return pd.concat([long.assign(**names, hardware_name=long["machine"]), told], axis=1)


def imported(table: pd.DataFrame, folder: Path) -> Path:
    """Return a folder with the rows of a table."""
    file, rows = folder / "table.csv", folder / "rows"
    folder.mkdir()
    as_rows(table).to_csv(file, index=False)
    dlas.import_rows(file, rows)
    return rows


def fitted_to(table: pd.DataFrame, name: str, draw: np.random.Generator, folder: Path) -> Path:
    """Return the folder of a sum of costs that was fitted to some cells on a device."""
    chosen = draw.choice(len(table), OF_EACH, replace=False)
    rows, place = imported(table[[name]].iloc[chosen], folder / name), folder / f"{name}-sum"
    asked = {"target": TARGET, "hold_out": "model/2", "options": {"costs": "own"}}
    dlas.fit("additive", rows, to=place, **asked)  # type: ignore[arg-type]
    return place


def predicted(table: pd.DataFrame, name: str, bases: str, folder: Path) -> tuple[float, float]:
    """Return the mean rank correlation and median error on the cells of a device that were not drawn."""
    points = read_points([imported(table[[name]], folder / name)], TARGET)
    mixture = Mixture(bases)
    samples = points.samples(mixture, TARGET, [""] * len(points))
    found = [drawn(mixture, samples, seed, folder) for seed in range(DRAWS)]
    rank, error = np.mean(found, axis=0)
    return float(rank), float(error)


def drawn(mixture: Mixture, samples: Samples, seed: int, folder: Path) -> Floats:
    """Return the rank correlation and the median error of one draw."""
    order = np.random.default_rng(seed).permutation(len(samples))
    fitted = mixture.fit(samples.take(order[:TEN]), Workspace(seed, folder, lambda line: None))
    rest = samples.take(order[TEN:])
    told = fitted.predict(rest)
    return np.array([stats.spearmanr(told, rest.target).statistic, np.median(np.abs(told / rest.target - 1))])


if __name__ == "__main__":
    typer.run(main)
