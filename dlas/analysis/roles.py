"""Roles of parts: untuned or tuned, dense or compressed, CPU or GPU.

Roles are derived from the rows, so that parts need not be installed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from dlas.analysis.repeats import merge_repeats
from dlas.axes.hardware.profile import Profile
from dlas.errors import InputError
from dlas.sweep.study.axes import DEFAULTS
from dlas.sweep.study.parts import LIBRARY, PROFILES

DENSE = str(DEFAULTS["compression"][0])
UNTUNED = str(DEFAULTS["compiler"][0])
TUNINGS = ("untuned", "scheduled", "tuned", "runtime")
"""How a compiler schedules convolutions: minimal schedules with threads only; hand-written schedules;
schedules from a search; or a runtime with kernels of its own."""
KINDS = ("dense", "pruned", "types", "chained", "other")
"""Kinds of compression: none, pruning, smaller types, chains of techniques, others."""
PROCESSORS = {"llvm": "cpu", "c": "cpu"}
"""Processors of the kinds of TVM targets that are not GPUs."""


def with_roles(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line a point, with the roles of its parts.

    Returns
    -------
    DataFrame
        What :func:`dlas.analysis.repeats.merge_repeats` gives, numbered from 0, with
        ``tuning`` (one of :data:`TUNINGS`), ``kind`` (one of :data:`KINDS`),
        ``primitive`` (the dense algorithm of which the algorithm is a version)
        and ``processor`` of the hardware's profile.
    """
    points = merge_repeats(frame).reset_index(drop=True)
    return points.assign(
        tuning=_tuning(points),
        kind=_kind(points),
        primitive=_primitive(points["algorithm_name"]),
        processor=_processors(points),
    )


def primitive(algorithm: str, algorithms: Iterable[str]) -> str:
    """Return the algorithm of which this is a version in another data format, or itself.

    ``csr_gemm`` is ``gemm`` on compressed rows where there is a ``gemm``.
    """
    bases = [name for name in algorithms if algorithm.endswith(f"_{name}")]
    return max(bases, key=len, default=algorithm)


def _tuning(points: pd.DataFrame) -> pd.Series:
    """Return each line's value of :data:`TUNINGS`.

    A compiler searches if any of its rows has an option ``trials``, counted trials,
    or time spent in the step ``tune``.
    """
    evidence = (points["trials"].fillna(0) > 0) | (points["tune_s"].fillna(0) > 0)
    if "compiler.trials" in points:
        evidence |= points["compiler.trials"].notna()
    searching = set(points.loc[evidence, "compiler_name"])
    names = points["compiler_name"]
    roles = np.select(
        [points["algorithm"] == LIBRARY, names.isin(searching), names == UNTUNED],
        ["runtime", "tuned", "untuned"],
        "scheduled",
    )
    return pd.Series(roles, index=points.index, dtype="string")


def _kind(points: pd.DataFrame) -> pd.Series:
    """Return each line's value of :data:`KINDS`, from what any row of that compression reached."""
    names = points["compression_name"]
    pruning = set(names[points["ratio"] > 0])
    types = set(names[points["bits"] > 0])
    kinds = np.select(
        [
            names == DENSE,
            names.str.contains("+", regex=False).fillna(False),
            names.isin(types),
            names.isin(pruning),
        ],
        ["dense", "chained", "types", "pruned"],
        "other",
    )
    return pd.Series(kinds, index=points.index, dtype="string")


def _primitive(algorithms: pd.Series) -> pd.Series:
    names = set(algorithms.dropna())
    return algorithms.map({name: primitive(name, names) for name in names})


def _processors(points: pd.DataFrame) -> pd.Series:
    """Return ``cpu`` or ``gpu``, from the hardware's profile, or else from any of its rows."""
    measured = points.groupby("hardware_name")["processor"].first()
    by_name = {
        name: _profile_processor(str(name)) or measured.get(name)
        for name in points["hardware_name"].dropna().unique()
    }
    return points["hardware_name"].map(by_name).astype("string")


def _profile_processor(hardware: str) -> str | None:
    path = PROFILES / f"{hardware}.toml"
    if not re.fullmatch(r"\w+", hardware) or not path.is_file():
        return None
    try:
        kind = Profile.read(path).target.get("kind")
    except InputError:
        return None
    return PROCESSORS.get(kind, "gpu") if kind else None
