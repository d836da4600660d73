"""``dlas choose``: an algorithm for each layer, as a table for ``per_layer``, with the predicted gain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.text import Text

from dlas.analysis.choosing.layers import (
    Candidate,
    ChoiceGain,
    LayerTimes,
    changes,
    changing_s,
    fastest,
    gained,
    layer_times,
    layouts_of,
)
from dlas.axes.choosers.per_layer import write
from dlas.face.tables.columns import maybe, names, numbers, table_of
from dlas.face.tables.table import Table
from dlas.face.tables.text import Grid
from dlas.face.tables.view import View
from dlas.sweep.rows.columns import UNSAID
from dlas.sweep.rows.frame import distinct, read_each, select
from dlas.sweep.rows.labels import factor, label, milliseconds, points, times_as_fast
from dlas.sweep.rows.results import Row, read_rows


def choose(folders: Sequence[Path], where: Sequence[str], path: Path) -> View:
    """Choose an algorithm for each layer, write the table to ``path``, and return it with its gain.

    The frame has the columns ``layer``, ``chosen`` and ``next``, two algorithms, and their
    ``latency_s`` and ``next_latency_s``.

    Raises
    ------
    InputError
        If the rows cannot be compared, or the file cannot be written.
    """
    measured = layer_times(_rows(folders, where))
    chosen, proven = fastest(measured)
    gain = gained(measured, chosen)
    above = [
        f"Chosen by `dlas choose {' '.join(map(str, folders))}` for {_setting(measured)}.",
        _prediction(measured, gain),
    ]
    write(
        path,
        {layer: json.loads(candidate.algorithm) for layer, candidate in chosen.items()},
        "\n".join(above),
    )
    below = [*_below(measured, chosen, gain, proven), f"written to {path}"]
    frame = _choices(measured, chosen)
    grid = Grid(_table(frame), [Text(_setting(measured), style="bold")], [Text(line) for line in below])
    return View(frame, grid)


def _rows(folders: Sequence[Path], where: Sequence[str]) -> Iterator[Row]:
    frame = select(read_each(folders), where)
    wanted = set(zip(frame["folder"], frame["id"], strict=True))
    for folder in distinct(folders):
        for row in read_rows(folder):
            if (str(folder), row.id) in wanted:
                yield row


def _setting(measured: LayerTimes) -> str:
    return ", ".join(
        f"batch {value}" if name == "batch" else value
        for name, value in measured.setting.items()
        if UNSAID.get(name) != value
    )


def _named(algorithm: str) -> str:
    return label(json.loads(algorithm))


def _prediction(measured: LayerTimes, gain: ChoiceGain) -> str:
    best = _named(measured.singles[0].algorithm)
    return (
        f"Predicted: {milliseconds(gain.predicted_s)} ms an inference, "
        f"{times_as_fast(gain.latency_s / gain.predicted_s)} as {best} alone, "
        f"measured with {milliseconds(gain.latency_s)} ms."
    )


def _choices(measured: LayerTimes, chosen: Mapping[str, Candidate]) -> pd.DataFrame:
    """Return a line for each layer: its algorithm and the next fastest one, with their times."""
    lines = []
    for layer, own in chosen.items():
        other = _next(measured.layers[layer], own)
        line = {"layer": layer, "chosen": _named(own.algorithm), "latency_s": own.latency_s}
        rest = {"next": _named(other.algorithm), "next_latency_s": other.latency_s} if other else {}
        lines.append({**line, "next": None, "next_latency_s": None, **rest})
    return pd.DataFrame(lines)


def _table(frame: pd.DataFrame) -> Table:
    """Return the table of :func:`_choices`, with how much faster each is than the next."""
    own, others = frame["latency_s"], frame["next_latency_s"].astype(float)
    all_ms = milliseconds(own.sum())
    return table_of(
        [
            names("layer", frame["layer"], summary="all layers"),
            names("chosen", frame["chosen"]),
            names("next", [maybe(name, str) for name in frame["next"]]),
            numbers("chosen ms", map(milliseconds, own), summary=all_ms),
            numbers("next ms", [maybe(seconds, milliseconds) for seconds in others]),
            numbers("as the next", [maybe(ratio, factor) for ratio in others / own], "times as fast"),
        ],
        "choices",
    )


def _next(candidates: Mapping[str, Candidate], chosen: Candidate) -> Candidate | None:
    """Return the fastest other candidate; it may be faster if layout changes are not counted."""
    others = [other for other in candidates.values() if other.algorithm != chosen.algorithm]
    return min(others, key=lambda candidate: candidate.latency_s, default=None)


def _below(
    measured: LayerTimes, chosen: Mapping[str, Candidate], gain: ChoiceGain, proven: bool
) -> Iterator[str]:
    changed = changes(measured.edges, layouts_of(chosen))
    if changed and measured.seconds_a_byte:
        rate, took = 1e-9 / measured.seconds_a_byte, changing_s(changed, measured.seconds_a_byte)
        yield (
            f"{len(changed)} changes of layout between layers: {milliseconds(took)} ms, "
            f"estimated at {rate:.3g} GB/s, the rate of those in the rows"
        )
    elif len({candidate.layouts for candidate in chosen.values()}) > 1:
        yield "no layout is changed between layers"
    if measured.unstable:
        yield f"{points(measured.unstable)} left out, whose times are unstable"
    if not proven:
        yield "too many layers read each other to try all choices: no change of a single layer is faster"
    yield (
        f"layers and changes of layout: {milliseconds(gain.after_s)} ms, "
        f"with the best single algorithm {milliseconds(gain.before_s)} ms: "
        f"{times_as_fast(gain.before_s / gain.after_s)}"
    )
    yield _prediction(measured, gain)
