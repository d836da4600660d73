"""What is known of points that were made, but neither built nor measured: operators and kernels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import cast

from dlas.bench.store.cache import Cache
from dlas.errors import InputError, PointError
from dlas.networks.operators import Operators, at_batch, read_operators
from dlas.stack import Layer
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.engine.steps.kernels import KERNELS_FILE, kernels_of
from dlas.sweep.rows.example import Example
from dlas.sweep.rows.predictions import PREDICTED
from dlas.sweep.rows.results import Row
from dlas.sweep.rows.schema import Device
from dlas.sweep.study.point import Choice, Point


@dataclass
class Examples:
    """The points of a study whose networks could be made."""

    points: list[Example] = field(default_factory=list)
    """With their devices and what is known of their networks and, where somebody asked, their programs."""
    failed: Counter[str] = field(default_factory=Counter)
    """Numbers of points whose networks could not be made or whose kernels are not known, by reason."""

    def required(self) -> Examples:
        """Return this, unless there is no point in it.

        Raises
        ------
        InputError
            It has the first reason.
        """
        if not self.points:
            raise InputError(f"no point of the study can be predicted: {next(iter(self.failed))}")
        return self


def planned(rows: Sequence[Row], cache: Cache, kernels: bool) -> Examples:
    """Return what is known of points whose networks were made.

    Parameters
    ----------
    rows : sequence of Row
        What became of them.
    kernels : bool
        Whether to tell the kernels of programs too.
    """
    found = Examples()
    networks: dict[str, Operators] = {}
    devices: dict[Choice, Device] = {}
    for row in rows:
        key, point = row.artifacts.get("network", ""), Point.of(asdict(row))
        try:
            if row.status == "ok" and key not in networks:
                networks[key] = network_operators(cache, key)
            if row.status != "ok" or not networks.get(key):
                found.failed[row.reason or "the operators of its network are not known"] += 1
                continue
            own = program_kernels(cache, row.artifacts, point, networks[key]) if kernels else []
        except PointError as error:  # nobody can tell its kernels, or an artifact is damaged
            found.failed[str(error)] += 1
            continue
        if point.hardware not in devices:
            devices[point.hardware] = cast(Device, point.device.describe())
        made = replace(row, status=PREDICTED, device=devices[point.hardware])
        found.points.append(Example(made, networks[key], own))
    return found


def network_operators(cache: Cache, key: str) -> Operators:
    """Return what is known of a network's operators, from which those of any batch follow.

    Points share a network that differ in batch, compiler or device.

    Parameters
    ----------
    key : str
        Of the network's artifact.

    Raises
    ------
    CorruptArtifact
        If the cache does not hold the network.
    """
    return read_operators(load_verified(cache, "network", key).folder)


def program_kernels(
    cache: Cache, artifacts: Mapping[str, object], point: Point, operators: Operators | None = None
) -> list[Layer]:
    """Return the kernels of a point's program in one inference, without times.

    Parameters
    ----------
    artifacts : mapping
        Keys of the point's artifacts by kind, once its steps until ``kernels`` have run.
    operators : Operators, optional
        Of its network, where they have been read already.

    Raises
    ------
    Unsupported
        If its compiler cannot tell them before the program has run, or the network does not take the batch.
    CorruptArtifact
        If the cache does not hold the network, or what was lowered.
    """
    if "kernels" in artifacts:
        folder = load_verified(cache, "kernels", str(artifacts["kernels"])).folder
        kernels: list[Layer] = json.loads((folder / KERNELS_FILE).read_text(encoding="utf-8"))
        return kernels
    key = str(artifacts["network"])
    known = at_batch(operators or network_operators(cache, key), point.batch)
    return kernels_of(point, lambda: restore_network(cache, key, point), known)
