"""What parts are to one another: untuned or tuned, dense or compressed, CPU or GPU.

It is read from the rows, so that rows of parts which are not installed here
have roles too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pandas as pd

from dlas.analysis.matching import latest
from dlas.errors import InputError
from dlas.hardware.profile import Profile
from dlas.study.parts import LIBRARY, PROFILES
from dlas.study.study import DEFAULTS

DENSE = str(DEFAULTS["compression"][0])
UNTUNED = str(DEFAULTS["compiler"][0])
TUNINGS = ("untuned", "scheduled", "tuned", "runtime")
"""What a compiler does with a convolution's loops, in this order: as little as runs on all threads; what
was written by hand; what a search found; or it brings kernels of its own."""
KINDS = ("dense", "pruned", "types", "chained", "other")
"""What a compression changes: nothing, which weights are zero, their type, several of these, other things."""
PROCESSORS = {"llvm": "cpu", "c": "cpu"}
"""Kinds of TVM targets that are not GPUs."""


def with_roles(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one line a point, with the roles of its parts.

    Returns
    -------
    DataFrame
        What :func:`dlas.analysis.matching.latest` gives, numbered from 0, with
        ``tuning`` (one of :data:`TUNINGS`), ``kind`` (one of :data:`KINDS`),
        ``primitive`` (the dense algorithm that the algorithm is a version of)
        and ``processor`` of the hardware's profile.
    """
    points = latest(frame).reset_index(drop=True)
    return points.assign(
        tuning=_tuning(points),
        kind=_kind(points),
        primitive=_primitive(points["algorithm_name"]),
        processor=_processors(points),
    )


def primitive(algorithm: str, known: Iterable[str]) -> str:
    """Return the algorithm of which this is a version on another data format, or itself.

    ``csr_gemm`` is ``gemm`` on compressed rows where there is a ``gemm``.
    """
    bases = [name for name in known if algorithm.endswith(f"_{name}")]
    return max(bases, key=len, default=algorithm)


def _tuning(points: pd.DataFrame) -> pd.Series:
    """Return each line's place in :data:`TUNINGS`.

    A compiler searches if any of its rows says so: an option ``trials``, trials
    that were counted, or time spent in the step ``tune``.
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
    """Return each line's place in :data:`KINDS`, from what any row of that compression reached."""
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
    known = set(algorithms.dropna())
    return algorithms.map({name: primitive(name, known) for name in known})


def _processors(points: pd.DataFrame) -> pd.Series:
    """Return ``cpu`` or ``gpu``: what the hardware's profile says, or else what any of its rows does."""
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
