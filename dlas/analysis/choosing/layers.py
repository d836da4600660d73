"""The algorithms of all layers with which their network costs least, from measured rows: for ``per_layer``.

Costs are times, in seconds, or energies, in joules.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlas.analysis.choosing.elimination import CostFactor, cheapest, descend, total
from dlas.analysis.matching import identity
from dlas.errors import InputError, unknown
from dlas.stack import CHANGE_LAYOUT, Layer
from dlas.sweep.rows.columns import MACHINE
from dlas.sweep.rows.labels import label
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.machines import machine_id, machine_names, with_threads
from dlas.sweep.rows.results import UNSTABLE, Row
from dlas.sweep.study import parts


@dataclass(frozen=True)
class ChoiceGain:
    """A choice of algorithms compared with the best single algorithm."""

    before: float
    after: float
    """Cost of all layers and of the layout changes between them, with the single algorithm and the choice."""
    cost: float
    """Measured cost of an inference with the single algorithm."""
    predicted: float
    """Predicted cost of an inference with the choice: less by the share of all operators' cost saved."""


def gained(measured: LayerCosts, chosen: Mapping[str, Candidate]) -> ChoiceGain:
    """Return the gain of a choice over the best single algorithm."""
    alone = measured.singles[0]
    before, after = measured.cost(measured.of(alone)), measured.cost(chosen)
    remaining = 1 - (before - after) / max(alone.operators, before)
    return ChoiceGain(before, after, alone.cost, alone.cost * remaining)


SAME = identity(("algorithm", "seed"))
"""Axes that compared times must agree on: all but the algorithm, which is chosen, and the seed."""
PASSED_OVER = (parts.LIBRARY, "per_layer")
"""Values of the algorithm axis that cannot be chosen for a layer."""
LATENCY, ENERGY = "latency_s", "energy_j"
COSTS = (LATENCY, ENERGY)
"""What algorithms are chosen by."""
PLAIN = "NCHW"
PORTS = ("input", "output")
CHANGES = re.compile(rf"{CHANGE_LAYOUT}_?\d*(#\d+)?")
Layouts = tuple[str, str]
"""The layouts in which a layer reads and writes."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm for one layer."""

    algorithm: str
    """Its content in rows, with options, as JSON."""
    cost: float
    """Median over the rows that used it; of times, without the profiler's part."""
    layouts: Layouts
    """The layouts in which it reads and writes."""


@dataclass(frozen=True)
class Single:
    """A network computed by one algorithm, and by ``direct`` where that one declined."""

    algorithm: str
    """As in :class:`Candidate`."""
    layers: Mapping[str, str]
    """By layer, the algorithm that computed it."""
    cost: float
    """Cost of an inference."""
    operators: float
    """Sum of the costs of all operators; of times, without the profiler's part."""


@dataclass(frozen=True)
class LayerCosts:
    """The costs of a network's layers, from the rows of one setting."""

    setting: Mapping[str, str]
    """Values that are equal in all rows."""
    layers: Mapping[str, Mapping[str, Candidate]]
    """By layer, its candidates by algorithm."""
    singles: tuple[Single, ...]
    """The one of least cost first."""
    edges: tuple[Mapping[str, Any], ...]
    """As in :class:`dlas.sweep.rows.results.Row`."""
    cost_a_byte: float | None
    """Cost of layout changes for each byte, over all that were measured; None if none was."""
    unstable: int = 0
    """Number of rows that are left out because their times are unstable."""
    by: str = LATENCY
    """What costs are, one of :data:`COSTS`."""

    def of(self, single: Single) -> dict[str, Candidate]:
        """Return the candidates that make a single algorithm's network."""
        return {layer: self.layers[layer][algorithm] for layer, algorithm in single.layers.items()}

    def cost(self, chosen: Mapping[str, Candidate]) -> float:
        """Return the cost of all layers and of the layout changes between them."""
        layers = sum(candidate.cost for candidate in chosen.values())
        return layers + changing(changes(self.edges, layouts_of(chosen)), self.cost_a_byte)


def layouts_of(chosen: Mapping[str, Candidate]) -> dict[str, Layouts]:
    """Return the layouts of each layer."""
    return {layer: candidate.layouts for layer, candidate in chosen.items()}


def changes(edges: Iterable[Mapping[str, Any]], layouts: Mapping[str, Layouts]) -> dict[Any, float]:
    """Return the bytes of each layout change; operators between layers keep the writer's layout.

    A change between two block sizes goes through NCHW and counts twice.
    """
    moved = {}
    for edge in edges:
        has = layouts.get(edge["writer"], (PLAIN, PLAIN))[1]
        wanted = layouts.get(edge["reader"], (PLAIN, PLAIN))[PORTS.index(edge["port"])]
        if wanted != has:
            times = 1 if PLAIN in (has, wanted) else 2
            moved[edge["writer"], edge["value"], wanted] = float(times * edge["bytes"])
    return moved


def changing(changed: Mapping[Any, float], cost_a_byte: float | None) -> float:
    """Return what layout changes cost: infinite if that of a byte is unknown."""
    rate = math.inf if cost_a_byte is None else cost_a_byte
    return rate * sum(changed.values()) if changed else 0.0


def layer_costs(rows: Iterable[Row], by: str = LATENCY) -> LayerCosts:
    """Return the costs of layers from rows.

    Parameters
    ----------
    rows : iterable of Row
        Those without a time that is a result are left out, and by energy those without that.
    by : str
        One of :data:`COSTS`.  A layer's energy is its own where the row tells it, or else its time times the
        mean power of the network.

    Raises
    ------
    InputError
        If ``by`` is no such cost; if no layer was timed, or no row has energy; if the rows are of several
        networks, compilers or devices, whose times cannot be compared; or if layouts differ and the rows have
        no edges.
    """
    if by not in COSTS:
        raise unknown("cost to choose by", by, COSTS)
    every = list(rows)
    used = [row for row in every if any(_timed(row, LATENCY))]
    if used and by == ENERGY:
        used = [row for row in used if row.energy_j is not None and any(_timed(row, by))]
        if not used:
            raise InputError(
                f"`by={by!r}`: no row has energy: their machines have no sensor that may be read"
            )
    if not used:
        others = ", ".join(PASSED_OVER)
        ends = Counter(row.status for row in every if row.status != "ok")
        ended = "".join(f"; {count:,} {status}" for status, count in ends.items())
        raise InputError(f"no row with status ok has times of layers ({others}: those do not count){ended}")
    setting = _setting(used)
    layers = _candidates(used, by)
    singles = [single for single in _singles(used, by) if set(single.layers) == set(layers)]
    if not singles:
        raise InputError("no algorithm has the times of all layers")
    edges: Sequence[Mapping[str, Any]] = next((row.edges for row in used if row.edges), ())
    if not edges and any(
        c.layouts != (PLAIN, PLAIN) for candidates in layers.values() for c in candidates.values()
    ):
        raise InputError("layouts differ, and no row says which layer reads which: run the study again")
    return LayerCosts(
        setting,
        layers,
        tuple(sorted(singles, key=lambda single: single.cost)),
        tuple(edges),
        _cost_a_byte(used, by),
        sum(row.status == UNSTABLE for row in every),
        by,
    )


def _layer_costs(row: Row, by: str) -> Iterator[tuple[Layer, float]]:
    """Yield the layers of a row that were timed, with their costs where these are known."""
    for layer, seconds in timed_layers(row):
        if by == LATENCY:
            yield layer, seconds
        elif (joules := layer.get("energy_j")) is not None:
            yield layer, joules
        elif row.power_w is not None:
            yield layer, row.power_w * seconds


def _whole(row: Row, by: str) -> float:
    """Return what an inference costs."""
    return statistics.median(row.latency_s) if by == LATENCY else row.energy_j or math.nan


def _timed(row: Row, by: str) -> Iterator[tuple[str, Candidate]]:
    """Yield each layer's name and the candidate that computed it."""
    if not row.timed or row.algorithm["name"] in PASSED_OVER:
        return
    for layer, cost in _layer_costs(row, by):
        if "algorithm" not in layer:
            continue
        declined = layer.get("declined") is not None
        algorithm = {"name": layer["algorithm"]} if declined else row.algorithm
        if not declined or algorithm["name"] in parts.names("algorithm"):
            content = json.dumps(algorithm, sort_keys=True)
            yield layer["name"], Candidate(content, cost, layer_layouts(layer))


def layer_layouts(layer: Mapping[str, Any]) -> Layouts:
    """Return in which layouts a layer of a row reads and writes."""
    return layer.get("input_layout", PLAIN), layer.get("output_layout", PLAIN)


def _setting(rows: Sequence[Row]) -> dict[str, str]:
    """Return the setting that all rows share; refuse rows of several settings."""
    machines = machine_names(row.device for row in rows)
    labels_by_name = {name: list(dict.fromkeys(_value(row, name, machines) for row in rows)) for name in SAME}
    labels_by_name["hardware"] = _devices(rows, labels_by_name["hardware"])
    several = {name: labels for name, labels in labels_by_name.items() if len(labels) > 1}
    if several:
        listed = "; ".join(f"{name} {', '.join(labels)}" for name, labels in several.items())
        name, labels = next(iter(several.items()))
        raise InputError(
            f"times of layers are compared within one setting, and there are several: {listed}; "
            f"choose one as in `where='{name}={labels[0]}'`"
        )
    return {name: labels[0] for name, labels in labels_by_name.items()}


def _value(row: Row, name: str, machines: Mapping[str, str]) -> str:
    if name == MACHINE:
        return machines.get(machine_id(row.device) or "", "unknown")
    return label(getattr(row, name))


def _devices(rows: Sequence[Row], labels: list[str]) -> list[str]:
    """Return the labels of hardware, with the threads where one was measured with several numbers."""
    measured = dict.fromkeys((label(row.hardware), row.device.get("threads")) for row in rows)
    if len(measured) == len(labels):
        return labels
    return list(dict.fromkeys(with_threads(own, count) if count else own for own, count in measured))


def _candidates(rows: Sequence[Row], by: str) -> dict[str, dict[str, Candidate]]:
    by_layer: dict[str, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for layer, candidate in _timed(row, by):
            by_layer[layer][candidate.algorithm].append(candidate)
    return {
        layer: {
            algorithm: Candidate(algorithm, statistics.median(c.cost for c in runs), runs[0].layouts)
            for algorithm, runs in algorithms.items()
        }
        for layer, algorithms in by_layer.items()
    }


def _singles(rows: Sequence[Row], by: str) -> Iterator[Single]:
    """Yield a network for each requested algorithm, all seeds together."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[json.dumps(row.algorithm, sort_keys=True)].append(row)
    for algorithm, group in groups.items():
        layers = {layer: candidate.algorithm for row in group for layer, candidate in _timed(row, by)}
        cost = statistics.median(_whole(row, by) for row in group)
        operators = statistics.median(sum(own for _, own in _layer_costs(row, by)) for row in group)
        yield Single(algorithm, layers, cost, operators)


def _cost_a_byte(rows: Sequence[Row], by: str) -> float | None:
    """Return the mean cost of layout changes for each byte that they moved."""
    cost = moved = 0.0
    for row in rows:
        took = sum(own for layer, own in _layer_costs(row, by) if CHANGES.fullmatch(layer["name"]))
        expected = changes(row.edges, {layer["name"]: layer_layouts(layer) for layer in row.layers})
        if expected:
            cost, moved = cost + took, moved + sum(expected.values())
    return cost / moved if moved else None


def best(measured: LayerCosts) -> tuple[dict[str, Candidate], bool]:
    """Return the candidate of each layer that minimises the cost of layers and layout changes together.

    Returns
    -------
    chosen : dict
    proven : bool
        Whether no other choice costs less.  Where too many layers depend on each other to prove
        that, the choice is a local optimum: no change of a single layer makes it cheaper.
    """
    options = {layer: _best_by_layouts(candidates) for layer, candidates in measured.layers.items()}
    costs = [
        CostFactor((layer,), np.array([c.cost for c in candidates])) for layer, candidates in options.items()
    ]
    costs += _factors_of_changes(measured, options)
    places = cheapest(costs)
    proven = places is not None
    if places is None:
        starts = [
            {layer: _place(options[layer], candidate) for layer, candidate in measured.of(single).items()}
            for single in measured.singles
        ]
        places = min((descend(costs, start) for start in starts), key=lambda chosen: total(costs, chosen))
    return {layer: candidates[places[layer]] for layer, candidates in options.items()}, proven


def _best_by_layouts(candidates: Mapping[str, Candidate]) -> list[Candidate]:
    """Return the cheapest candidate of each pair of layouts: neighbours depend on layouts only."""
    ordered = sorted(candidates.values(), key=lambda candidate: candidate.cost)
    return list({candidate.layouts: candidate for candidate in reversed(ordered)}.values())[::-1]


def _place(options: Sequence[Candidate], candidate: Candidate) -> int:
    """Return the place of the candidate that has the same layouts."""
    return next(i for i, option in enumerate(options) if option.layouts == candidate.layouts)


def _factors_of_changes(
    measured: LayerCosts, options: Mapping[str, Sequence[Candidate]]
) -> Iterator[CostFactor]:
    """Yield the cost of changing each value's layout, for all layouts of its writer and its readers."""
    values: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for edge in measured.edges:
        values[edge["writer"], edge["value"]].append(edge)
    for edges in values.values():
        ends = dict.fromkeys(edge[end] for edge in edges for end in ("writer", "reader"))
        layers = tuple(layer for layer in ends if layer in options)
        if all(c.layouts == (PLAIN, PLAIN) for layer in layers for c in options[layer]):
            continue
        table = np.zeros([len(options[layer]) for layer in layers])
        for at in np.ndindex(table.shape):
            chosen = {layer: options[layer][i] for layer, i in zip(layers, at, strict=True)}
            table[at] = changing(changes(edges, layouts_of(chosen)), measured.cost_a_byte)
        yield CostFactor(layers, table)
