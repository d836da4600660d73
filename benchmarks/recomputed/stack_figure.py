"""Figures 4 and 6 of the DLAS paper: programs of networks by compression, compiler and algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from benchmarks.recomputed.kept import only, over_dense, points
from benchmarks.recomputed.markdown import Value
from dlas.analysis.matching import timed

COMPILERS = {"untuned": "untuned", "tuned": "metaschedule"}
"""What tables call compilers."""
PRUNINGS = {"weights": "weight_pruning", "channels": "channel_pruning"}
"""What they call prunings."""


@dataclass(frozen=True)
class StackFigure:
    """A figure's rows."""

    folder: str
    """Below ``experiments/``."""

    def programs(self, network: str, compiler: str) -> pd.DataFrame:
        """Return the programs with a time, of one network by one compiler."""
        frame = points(self.folder)
        return only(frame[timed(frame)], model_name=network, compiler_name=COMPILERS[compiler])

    def speed(self, network: str, technique: str, compiler: str, algorithm: str) -> float | None:
        """Return how many times as fast as dense `direct` in float32 by the same compiler a program is."""
        programs = self.programs(network, compiler)
        return over_dense(programs, compression_name=technique, algorithm=algorithm)

    def speeds(self, network: str, technique: str, compiler: str) -> dict[str, Value]:
        """Return the speeds of the three algorithms of a compression, sparse ones of pruned networks."""
        form = "csr_" if technique in PRUNINGS.values() else ""
        return {
            f"`{name}`": self.speed(network, technique, compiler, form + name)
            for name in ("direct", "gemm", "spatial_pack")
        }

    def over_fastest_dense(self, network: str, technique: str, compiler: str) -> float:
        """Return how many times as fast as the fastest dense program the fastest of a compression is."""
        fastest = self.programs(network, compiler).groupby("compression_name")["latency_s"].min()
        return float(fastest["none"] / fastest[technique])

    def unstable(self) -> float:
        """Return the number of points whose times are no result."""
        return float((points(self.folder)["status"] == "unstable").sum())
