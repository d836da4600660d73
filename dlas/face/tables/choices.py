"""``dlas choose``: an algorithm for each layer, as a table for ``per_layer``, with the predicted gain."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd
from rich.text import Text

from dlas.analysis.choosing.layers import (
    LATENCY,
    Candidate,
    ChoiceGain,
    LayerCosts,
    best,
    changes,
    changing,
    gained,
    layer_costs,
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


def choose(folders: Sequence[Path], where: Sequence[str], path: Path, by: str = LATENCY) -> View:
    """Choose an algorithm for each layer, write the table to ``path``, and return it with its gain.

    The frame has the columns ``layer``, ``chosen`` and ``next``, two algorithms, and their
    ``latency_s`` and ``next_latency_s``, or ``energy_j`` and ``next_energy_j``.

    Raises
    ------
    InputError
        If there is no such cost, the rows cannot be compared, or the file cannot be written.
    """
    measured = layer_costs(_rows(folders, where), by)
    chosen, proven = best(measured)
    gain = gained(measured, chosen)
    option = "" if by == LATENCY else f" --by {by}"
    above = [
        f"Chosen by `dlas choose {' '.join(map(str, folders))}{option}` for {_setting(measured)}.",
        _prediction(measured, gain),
    ]
    write(
        path,
        {layer: json.loads(candidate.algorithm) for layer, candidate in chosen.items()},
        "\n".join(above),
    )
    below = [*_below(measured, chosen, gain, proven), f"written to {path}"]
    frame = _choices(measured, chosen)
    grid = Grid(_table(frame, by), [Text(_setting(measured), style="bold")], [Text(line) for line in below])
    return View(frame, grid)


def _rows(folders: Sequence[Path], where: Sequence[str]) -> Iterator[Row]:
    frame = select(read_each(folders), where)
    wanted = set(zip(frame["folder"], frame["id"], strict=True))
    for folder in distinct(folders):
        for row in read_rows(folder):
            if (str(folder), row.id) in wanted:
                yield row


def _setting(measured: LayerCosts) -> str:
    return ", ".join(
        f"batch {value}" if name == "batch" else value
        for name, value in measured.setting.items()
        if UNSAID.get(name) != value
    )


def _named(algorithm: str) -> str:
    return label(json.loads(algorithm))


def _prediction(measured: LayerCosts, gain: ChoiceGain) -> str:
    alone = _named(measured.singles[0].algorithm)
    return (
        f"Predicted: {_shown(measured, gain.predicted)} an inference, "
        f"{_saving(measured, gain.cost / gain.predicted)} as {alone} alone, "
        f"measured with {_shown(measured, gain.cost)}."
    )


def _shown(measured: LayerCosts, cost: float) -> str:
    """Return a cost with its unit."""
    return f"{milliseconds(cost)} ms" if measured.by == LATENCY else f"{milliseconds(cost)} mJ"


def _saving(measured: LayerCosts, ratio: float) -> str:
    """Return in words how many times less a choice costs."""
    return (
        times_as_fast(ratio)
        if measured.by == LATENCY
        else f"{factor(ratio)} times as many inferences a joule"
    )


def _choices(measured: LayerCosts, chosen: Mapping[str, Candidate]) -> pd.DataFrame:
    """Return a line for each layer: its algorithm and the next best one, with their costs."""
    lines = []
    for layer, own in chosen.items():
        other = _next(measured.layers[layer], own)
        line = {"layer": layer, "chosen": _named(own.algorithm), measured.by: own.cost}
        rest = {"next": _named(other.algorithm), f"next_{measured.by}": other.cost} if other else {}
        lines.append({**line, "next": None, f"next_{measured.by}": None, **rest})
    return pd.DataFrame(lines)


def _table(frame: pd.DataFrame, by: str) -> Table:
    """Return the table of :func:`_choices`, with how much less each costs than the next."""
    own, others = frame[by], frame[f"next_{by}"].astype(float)
    all_ms = milliseconds(own.sum())
    unit, better = ("ms", "times as fast") if by == LATENCY else ("mJ", "times as many a joule")
    return table_of(
        [
            names("layer", frame["layer"], summary="all layers"),
            names("chosen", frame["chosen"]),
            names("next", [maybe(name, str) for name in frame["next"]]),
            numbers(f"chosen {unit}", map(milliseconds, own), summary=all_ms),
            numbers(f"next {unit}", [maybe(seconds, milliseconds) for seconds in others]),
            numbers("as the next", [maybe(ratio, factor) for ratio in others / own], better),
        ],
        "choices",
    )


def _next(candidates: Mapping[str, Candidate], chosen: Candidate) -> Candidate | None:
    """Return the best other candidate; it may cost less if layout changes are not counted."""
    others = [other for other in candidates.values() if other.algorithm != chosen.algorithm]
    return min(others, key=lambda candidate: candidate.cost, default=None)


def _below(
    measured: LayerCosts, chosen: Mapping[str, Candidate], gain: ChoiceGain, proven: bool
) -> Iterator[str]:
    changed = changes(measured.edges, layouts_of(chosen))
    if changed and measured.cost_a_byte:
        rate, took = 1e-9 / measured.cost_a_byte, changing(changed, measured.cost_a_byte)
        unit = "GB/s" if measured.by == LATENCY else "GB/J"
        yield (
            f"{len(changed)} changes of layout between layers: {_shown(measured, took)}, "
            f"estimated at {rate:.3g} {unit}, the rate of those in the rows"
        )
    elif len({candidate.layouts for candidate in chosen.values()}) > 1:
        yield "no layout is changed between layers"
    if measured.unstable:
        yield f"{points(measured.unstable)} left out, whose times are unstable"
    if not proven:
        yield "too many layers read each other to try all choices: no change of a single layer is better"
    yield (
        f"layers and changes of layout: {_shown(measured, gain.after)}, "
        f"with the best single algorithm {_shown(measured, gain.before)}: "
        f"{_saving(measured, gain.before / gain.after)}"
    )
    yield _prediction(measured, gain)
