"""Expected and achieved speed-ups of compression.

The expected speed-up follows from the work saved: 1 / (1 - ratio)
for pruning, 32 / bits for types, the dense network's multiply-adds over its own for a path
through a flexible network.  The achieved one is the time of the fastest
dense algorithm over that of the compression's fastest algorithm, in the same
setting under the same compiler.

References
----------
DLAS, section 5.1.2.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dlas.analysis.matching import SETTING, groups
from dlas.analysis.paths import COMPRESSION
from dlas.analysis.roles import DENSE
from dlas.analysis.winners import Times, Winner
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import SAMPLES

NETWORK = ("dataset", "model", "seed")
"""Columns of a dense network."""
COLUMNS = [
    *SETTING,
    "hardware_name",
    "compiler",
    "tuning",
    "compression",
    "compression_name",
    "kind",
    "processor",
    "expected",
    "achieved",
    "low",
    "high",
    "share",
    "point",
    "dense_point",
    "tried",
    "failed",
    "missing",
]


def expected(points: pd.DataFrame) -> pd.Series:
    """Return the expected speed-up of each line's compression, NaN where it is unknown."""
    pruned = 1 / (1 - points["ratio"].where(points["ratio"].between(0, 1, inclusive="left")))
    types = 32 / points["bits"].where(points["bits"] > 0)
    paths = _saved_by_paths(points) * types.fillna(1)
    return points["expected_speedup"].fillna(paths).fillna(types).fillna(pruned)


def _saved_by_paths(points: pd.DataFrame) -> pd.Series:
    """Return the dense network's multiply-adds over those of paths through it, NaN for other networks."""
    techniques = points["compression_name"].str.split("+", regex=False)
    is_path = (
        techniques.map(lambda names: COMPRESSION in names, na_action="ignore").fillna(False).astype(bool)
    )
    dense = points[points["compression"] == DENSE].groupby([*NETWORK], dropna=False)["macs"].first()
    whole = points[[*NETWORK]].join(dense.rename("macs"), on=[*NETWORK])["macs"]
    left = points["effective_macs"].fillna(points["macs"])
    return (whole / left).astype(float).where(is_path)


def speedups(points: pd.DataFrame) -> pd.DataFrame:
    """Return expected and achieved speed-up of each compression.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.roles.with_roles` returned.

    Returns
    -------
    DataFrame
        One line for each setting, compiler and compression; a runtime that brings
        its own kernels is compared with itself.
        ``achieved`` with its interval ``low`` and ``high``; ``share`` is achieved over
        expected; ``point`` and ``dense_point`` are the lines compared, the
        fastest of ``tried`` algorithms, of which ``failed`` have no time.
        ``missing`` says why there is no ratio.
    """
    times, expectations = Times(points), expected(points).to_numpy()
    names = points["compression"].astype(str).to_numpy()
    told = points[[name for name in COLUMNS if name in points]].to_dict("records")
    compared = []
    for lines in groups(points, [*SETTING, "compiler"]):
        dense = times.fastest(lines[names[lines] == DENSE])
        for compression in np.unique(names[lines]):
            if compression != DENSE:
                chosen = lines[names[lines] == compression]
                own = _compared(expectations[chosen], times.fastest(chosen), dense)
                compared.append(told[chosen[0]] | own)
    return _with_ratios(points, pd.DataFrame(compared, columns=COLUMNS))


def _compared(expectations: np.ndarray, best: Winner, dense: Winner) -> dict[str, object]:
    own = expectations[~np.isnan(expectations)]
    missing = (
        "no time of its own" if not best.points else "" if dense.points else "no time of the dense network"
    )
    return {
        "expected": float(own[0]) if len(own) else np.nan,
        "point": best.points[0] if best.points else -1,
        "dense_point": dense.points[0] if dense.points else -1,
        "tried": best.tried,
        "failed": best.failed,
        "missing": missing,
    }


def _with_ratios(points: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    both = (table["missing"] == "").to_numpy(dtype=bool)
    samples = points[SAMPLES].tolist()
    above = [samples[line] for line in table.loc[both, "dense_point"]]
    below = [samples[line] for line in table.loc[both, "point"]]
    ratios = np.full((len(table), 3), np.nan)
    ratios[both] = intervals.ratios(above, below)
    table = table.assign(achieved=ratios[:, 0], low=ratios[:, 1], high=ratios[:, 2])
    return table.assign(share=table["achieved"] / table["expected"])
