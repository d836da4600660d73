"""Which statistic of a point's samples repeats best?  ``python -m benchmarks.repeats FOLDER FOLDER``.

The folders hold measurements of the same points at different times.  For each statistic the noise floor
is printed: the mean relative difference of two measurements over the square root of 2.  With the
sentinel's correction, a point's times are divided by how much slower the sentinel ran than its fastest
run in the folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from dlas.prediction.learning.noise import noise_floor
from dlas.sweep.rows.results import Row, read_rows

STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "median": lambda samples: float(np.median(samples)),
    "lower quartile": lambda samples: float(np.quantile(samples, 0.25)),
    "minimum": min,
}


def main() -> None:
    """Print the floors of the statistics, as measured and corrected, of all points and of the undisturbed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = [
        [row for row in read_rows(folder) if row.status == "ok" and row.latency_s]
        for folder in parser.parse_args().folders
    ]
    common = set.intersection(*({row.id for row in rows} for rows in folders))
    noisy = {row.id for rows in folders for row in rows if row.noisy}
    print(f"{len(common)} points were measured in every folder, {len(common - noisy)} undisturbed")
    print("| statistic | all points | with the sentinel's correction | undisturbed points |")
    print("|---|---|---|---|")
    for name, statistic in STATISTICS.items():
        cells = (
            floor(folders, common, statistic, corrected=False),
            floor(folders, common, statistic, corrected=True),
            floor(folders, common - noisy, statistic, corrected=False),
        )
        print(f"| {name} | {' | '.join('' if cell is None else f'{cell:.1%}' for cell in cells)} |")
    for target in ("peak_memory_bytes", "resident_bytes"):
        of_memory = [[(row.id, getattr(row, target)) for row in rows if row.id in common] for rows in folders]
        found = noise_floor(_frame(of_memory), "value")
        print(f"{target}: {'' if found is None else f'{found:.2%}'}")


def floor(
    folders: list[list[Row]], chosen: set[str], statistic: Callable[[list[float]], float], *, corrected: bool
) -> float | None:
    """Return the noise floor of a statistic over the chosen points; None if there are none."""
    values: list[list[tuple[str, float | None]]] = []
    for rows in folders:
        fastest = min(min(row.sentinel_s) for row in rows if row.sentinel_s)
        values.append(
            [
                (row.id, statistic(row.latency_s) / (slowdown(row, fastest) if corrected else 1.0))
                for row in rows
                if row.id in chosen
            ]
        )
    return noise_floor(_frame(values), "value")


def slowdown(row: Row, fastest_s: float) -> float:
    """Return how much slower the sentinel ran around a row's samples than in the fastest run, at least 1."""
    return float(np.median(row.sentinel_s)) / fastest_s if row.sentinel_s else 1.0


def _frame(values: list[list[tuple[str, float | None]]]) -> pd.DataFrame:
    """Return measurements as a table."""
    frame = pd.DataFrame([each for own in values for each in own], columns=["id", "value"])
    return frame.assign(status="ok")


if __name__ == "__main__":
    main()
