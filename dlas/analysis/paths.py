"""Paths of flexible networks: which are worth taking, and whether that changes with batch or device.

Paths of one network are compared within one place: equal in all but the path.  Latencies have
intervals, so a path is in the Pareto set, or not in it, or that is open; a set changes between
two places only where a path is surely in the one and surely not in the other.  Without an accuracy
a path is in no set: nothing tells whether it is worth its time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlas.analysis.matching import by_device, groups, natural, timed
from dlas.errors import InputError
from dlas.sweep.rows import intervals
from dlas.sweep.rows.columns import MACHINE
from dlas.sweep.rows.labels import MISSING, factor
from dlas.sweep.study.parts import LIBRARY

COMPRESSION, ALL = "leaf", "all"
PATH = "path"
NETWORK = "network"
"""Column of a network without its path: the model, and how its paths were trained."""
PLACE = ("dataset", NETWORK, "algorithm", "compiler", "hardware", MACHINE, "batch", "task", "seed")
"""Columns of a place, where the paths of one network are compared."""
CHANGED = ("batch", "hardware", "compiler", "algorithm")
"""Columns along which Pareto sets are compared."""
BESIDE = {"compiler": ("algorithm",), "hardware": (MACHINE,)}
"""Columns that may differ, too: runtimes have no algorithm, and devices are in several machines."""
PROFILE, DEVICE = "hardware_name", "device"
IN, OUT, OPEN, UNKNOWN = "in", "out", "open", "unknown"
FEWEST = 4
"""Least number of paths for a rank correlation."""
Truths = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def paths_of(points: pd.DataFrame) -> pd.DataFrame:
    """Return the timed points that are a path of a flexible network.

    Parameters
    ----------
    points : DataFrame
        What :func:`dlas.analysis.repeats.merge_repeats` returned.

    Returns
    -------
    DataFrame
        Those lines of it, with ``path``, ``network``, and their part in the Pareto sets of their
        place: ``member`` by latency, one of :data:`IN`, :data:`OUT`, :data:`OPEN`, or :data:`UNKNOWN`
        without an accuracy; and ``by_macs`` by multiply-adds, a truth.
    """
    found = points[_are_paths(points)].copy()
    found[PATH] = found["compression.path"].astype(str) if len(found) else pd.Series(dtype=str)
    found[NETWORK] = [
        _network(model, compression, path)
        for model, compression, path in zip(found["model"], found["compression"], found[PATH], strict=True)
    ]
    members = np.full(len(found), OUT, dtype=object)
    by_macs = np.zeros(len(found), dtype=bool)
    for lines in groups(found, PLACE):
        inside = found.iloc[lines]
        members[lines], by_macs[lines] = _members(inside), _by_macs(inside)
    return found.assign(member=members, by_macs=by_macs)


def require(points: pd.DataFrame) -> pd.DataFrame:
    """Return :func:`paths_of` the points.

    Raises
    ------
    InputError
        If there are none.
    """
    found = paths_of(points)
    if found.empty:
        raise InputError(
            'no row is a timed path of a flexible network: run a study with compression { name = "leaf", '
            'path = ["0000", "0001", ...] }'
        )
    return found


def places(found: pd.DataFrame) -> pd.DataFrame:
    """Return one line a place: its Pareto sets, and how multiply-adds and latencies go together.

    Parameters
    ----------
    found : DataFrame
        What :func:`paths_of` returned.

    Returns
    -------
    DataFrame
        The columns of a place, the number of ``paths``, the Pareto sets ``by_latency``, what is
        ``open`` and ``by_macs`` (tuples of paths, the fastest first), the number of paths
        ``without_accuracy``, which are in no set, ``correlation`` of multiply-adds and
        latency with ``low`` and ``high`` (NaN for fewer than four paths), ``fastest``, and the
        ``speedup`` and ``macs_share`` of the fastest path against the legacy network's.
    """
    lines = [_place(found.iloc[inside]) for inside in groups(found, PLACE)]
    lines.sort(key=lambda line: [natural(str(line[name])) for name in PLACE])
    return pd.DataFrame(lines)


def changes(found: pd.DataFrame) -> pd.DataFrame:
    """Return how Pareto sets differ between places that differ in one column only, where they have any.

    A runtime has kernels of its own and no algorithm: along the compiler it is compared with every other,
    whatever the algorithm there.  Devices in different machines are compared where their settings are equal,
    or their profiles are others.

    Returns
    -------
    DataFrame
        One line for neighbouring values of one of :data:`CHANGED`, any two compilers or machines: ``along``,
        ``first`` and ``second`` (its values), the columns of the place (None where they differ), the
        paths that surely ``enter`` and ``leave`` (tuples), and the number of paths that are ``open`` in
        either place.
    """
    named = found.assign(**{DEVICE: by_device(found)["hardware"]})
    named = named[named["member"] != UNKNOWN]
    lines = [_change(along, *pair) for along in CHANGED for pair in _pairs(named, along)]
    columns = ["along", "first", "second", *PLACE, "enter", "leave", "open"]
    return pd.DataFrame(lines, columns=columns, dtype=object)  # beside None, an integer would be a float


def legacy(inside: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of :func:`paths_of` whose path takes no shallow phase: the legacy network's."""
    return inside[~inside[PATH].str.contains("1")]


def text(paths: Sequence[str]) -> str:
    """Return paths as ``keep`` of the compression takes them."""
    return " ".join(paths)


def sets(place: Mapping[Any, Any]) -> dict[str, str]:
    """Return the sets of a line of :func:`places`, as texts by the headers of their columns."""
    return {
        "Pareto set, the fastest first": text(place["by_latency"]) or MISSING,
        OPEN: text(place["open"]) or MISSING,
        "by multiply-adds": text(place["by_macs"]) or MISSING,
    }


def numbers(place: Mapping[Any, Any]) -> dict[str, str]:
    """Return the numbers of a line of :func:`places`, as texts by the headers of their columns."""
    speedup, share, correlation = (place[name] for name in ("speedup", "macs_share", "correlation"))
    interval = f"[{place['low']:.2f}, {place['high']:.2f}]"
    return {
        "fastest path": place["fastest"],
        "times as fast as path of zeros": MISSING if pd.isna(speedup) else factor(speedup),
        "its multiply-adds": MISSING if pd.isna(share) else f"{share:.0%}",
        "correlation [95 % interval]": MISSING if pd.isna(correlation) else f"{correlation:.2f} {interval}",
    }


def _are_paths(points: pd.DataFrame) -> pd.Series:
    if "compression.path" not in points:
        return pd.Series(False, points.index)
    path = points["compression.path"]
    return timed(points) & (points["compression_name"] == COMPRESSION) & path.notna() & (path != ALL)


def _network(model: str, compression: str, path: str) -> str:
    """Return a network's label without its path."""
    options = compression.partition("(")[2].removesuffix(")").split(", ")
    others = [option for option in options if option not in ("", f"path={path}")]
    return f"{model}, {', '.join(others)}" if others else model


def _members(inside: pd.DataFrame) -> list[str]:
    """Return each path's part in the Pareto set by latency, as far as intervals tell."""
    low, high = (inside[name].to_numpy(dtype=float) for name in ("latency_low_s", "latency_high_s"))
    better = _at_least_as_good(inside)
    surely_out = np.any(better & (high[:, None] < low[None, :]), axis=0)
    perhaps_out = np.any(better & (low[:, None] <= high[None, :]), axis=0)
    cases = [inside["accuracy"].isna().to_numpy(dtype=bool), surely_out, perhaps_out]
    members: list[str] = np.select(cases, [UNKNOWN, OUT, OPEN], IN).tolist()
    return members


def _by_macs(inside: pd.DataFrame) -> Truths:
    """Return which paths are in the Pareto set by multiply-adds, which have no noise."""
    macs = inside["macs"].to_numpy(dtype=float, na_value=np.nan)
    better = _at_least_as_good(inside)
    cheaper = macs[:, None] <= macs[None, :]
    strictly = (macs[:, None] < macs[None, :]) | ~better.T
    known = inside["accuracy"].notna().to_numpy(dtype=bool)
    kept: Truths = known & ~np.any(better & cheaper & strictly, axis=0)
    return kept


def _at_least_as_good(inside: pd.DataFrame) -> Truths:
    """Return which path [first] is at least as accurate as which other [second]; none without an accuracy."""
    accuracy = inside["accuracy"].to_numpy(dtype=float, na_value=np.nan)
    better: Truths = accuracy[:, None] >= accuracy[None, :]
    np.fill_diagonal(better, False)
    return better


def _place(inside: pd.DataFrame) -> dict[str, Any]:
    ordered = inside.sort_values("latency_s", kind="stable")
    of_member = {member: tuple(ordered.loc[ordered["member"] == member, PATH]) for member in (IN, OPEN)}
    fastest = ordered.iloc[0]
    own = legacy(ordered)
    against = own.iloc[0] if len(own) else None
    return {
        **{name: inside[name].iloc[0] for name in PLACE},
        "paths": len(inside),
        "by_latency": of_member[IN],
        "open": of_member[OPEN],
        "by_macs": tuple(ordered.loc[ordered["by_macs"], PATH]),
        "without_accuracy": int((inside["member"] == UNKNOWN).sum()),
        **_correlated(inside),
        "fastest": fastest[PATH],
        "speedup": np.nan if against is None else against["latency_s"] / fastest["latency_s"],
        "macs_share": np.nan if against is None else fastest["macs"] / against["macs"],
    }


def _correlated(inside: pd.DataFrame) -> dict[str, float]:
    """Return the rank correlation of multiply-adds and latency over paths, with its interval."""
    both = inside[["macs", "latency_s"]].dropna().to_numpy(dtype=float)
    if len(both) < FEWEST:
        return {"correlation": np.nan, "low": np.nan, "high": np.nan}
    value, low, high = intervals.rank_correlation(*both.T)
    return {"correlation": value, "low": low, "high": high}


def _pairs(found: pd.DataFrame, along: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield two places at a time that differ along a column alone."""
    apart = [along, *BESIDE.get(along, ())]
    for inside in groups(found, [name for name in PLACE if name not in apart]):
        block = found.iloc[inside]
        parts = [block.iloc[lines] for lines in groups(block, apart)]
        parts.sort(key=lambda part: [natural(str(part[name].iloc[0])) for name in apart])
        if along == "compiler":
            yield from (pair for pair in itertools.combinations(parts, 2) if _are_compilers(*pair))
        elif along == "hardware":
            yield from _devices(parts)
        else:
            yield from itertools.pairwise(parts)


def _devices(parts: Sequence[pd.DataFrame]) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Yield neighbouring settings of each machine, and equal settings or other profiles of two machines."""
    of_machine: dict[str, list[pd.DataFrame]] = {}
    for part in parts:
        of_machine.setdefault(str(part[MACHINE].iloc[0]), []).append(part)
    for own in of_machine.values():
        yield from itertools.pairwise(own)
    for one, other in itertools.combinations(of_machine.values(), 2):
        for pair in itertools.product(one, other):
            settings, profiles = ({part[name].iloc[0] for part in pair} for name in ("hardware", PROFILE))
            if len(settings) == 1 or len(profiles) == 2:
                yield pair


def _are_compilers(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Return whether places differ in the compiler, and in no algorithm that both have."""
    (one, algorithm), (other, another) = (
        (part["compiler"].iloc[0], part["algorithm"].iloc[0]) for part in (first, second)
    )
    return bool(one != other and (algorithm == another or LIBRARY in (algorithm, another)))


def _change(along: str, first: pd.DataFrame, second: pd.DataFrame) -> dict[str, Any]:
    one, other = (part.drop_duplicates(PATH).set_index(PATH)["member"] for part in (first, second))
    common = sorted(set(one.index) & set(other.index))
    pairs = {path: (one[path], other[path]) for path in common}
    values = {name: (first[name].iloc[0], second[name].iloc[0]) for name in PLACE}
    place = {name: ends[0] if str(ends[0]) == str(ends[1]) else None for name, ends in values.items()}
    named = values[along]
    if along == "compiler" and place["algorithm"] is None:
        first_name, second_name = map(_with_algorithm, values["compiler"], values["algorithm"])
        named = first_name, second_name
    elif along == "hardware":
        named = first[DEVICE].iloc[0], second[DEVICE].iloc[0]
    return {
        "along": along,
        "first": named[0],
        "second": named[1],
        **place,
        "enter": tuple(path for path, pair in pairs.items() if pair == (OUT, IN)),
        "leave": tuple(path for path, pair in pairs.items() if pair == (IN, OUT)),
        "open": sum(OPEN in pair for pair in pairs.values()),
    }


def _with_algorithm(compiler: str, algorithm: str) -> str:
    return compiler if algorithm == LIBRARY else f"{compiler} with {algorithm}"
