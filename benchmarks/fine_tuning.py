"""What fine-tuning on the Pareto set gains: ``python -m benchmarks.fine_tuning FOLDER...``.

The folders hold rows of one network's paths after both stages, with several seeds.  For each seed, the
mean difference of accuracy over the paths that fine-tuning kept is one number; the interval is Student's,
over seeds.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import stats

from dlas.analysis.paths import COMPRESSION
from dlas.sweep.rows.results import Row, read_rows

LEVEL = 0.95
OF_A_PATH = ("path", "stage", "keep")
"""Options of the compression that differ between rows of one flexible network."""
Accuracies = dict[tuple[str, str], float]
"""By stage and path."""


def main() -> None:
    """Print the gain of each seed and their mean with its interval."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    folders = parser.parse_args().folders
    rows = [row for folder in folders for row in read_rows(folder)]
    if len(networks := {network(row) for row in rows if row.compression.get("name") == COMPRESSION}) > 1:
        parser.error(f"rows of one network are paired; these are of {'; '.join(sorted(networks))}")
    found = gains(rows)
    if not found:
        parser.error(f"no path with an accuracy after both stages in {', '.join(map(str, folders))}")
    for seed, (gain, paths) in sorted(found.items()):
        print(f"seed {seed}: {100 * gain:+.2f} points over {len(paths)} paths ({' '.join(paths)})")
    mean, low, high = interval([gain for gain, _ in found.values()])
    print(f"mean: {100 * mean:+.2f} points [{100 * low:+.2f}, {100 * high:+.2f}] over {len(found)} seeds")


def network(row: Row) -> str:
    """Return what a row's paths lead through: the same text for rows whose paths can be paired."""
    options = {name: value for name, value in row.compression.items() if name not in OF_A_PATH}
    return ", ".join(json.dumps(part) for part in (row.dataset, row.model, options))


def gains(rows: Iterable[Row]) -> dict[int, tuple[float, list[str]]]:
    """Return each seed's mean difference over the paths that were kept, and those paths."""
    accuracies: dict[int, Accuracies] = defaultdict(dict)
    kept: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        if row.compression.get("name") != COMPRESSION or row.accuracy is None:
            continue
        stage, path = row.reached.get("stage", "base"), row.compression["path"]
        accuracies[row.seed][stage, path] = row.accuracy
        if stage == "fine_tuned":
            kept[row.seed] |= set(row.reached.get("kept", ()))
    found = {}
    for seed, known in accuracies.items():
        paths = sorted(
            path
            for path in kept[seed]
            if "1" in path and {("base", path), ("fine_tuned", path)} <= known.keys()
        )
        if paths:
            differences = [known["fine_tuned", path] - known["base", path] for path in paths]
            found[seed] = float(np.mean(differences)), paths
    return found


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean of some numbers and its interval of level 0.95."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    low, high = stats.t.interval(LEVEL, len(values) - 1, mean, stats.sem(values))
    return mean, float(low), float(high)


if __name__ == "__main__":
    main()
