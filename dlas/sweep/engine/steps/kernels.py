"""Note the kernels of a program that is not built, for which some compilers lower the network."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.networks.operators import at_batch, read_operators
from dlas.stack import Backend, Hardware, Layer, Network, Operator
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.study.point import Point

KERNELS_FILE = "kernels.json"


def run(
    content: dict[str, Any], root: str, network_key: str, kernels_key: str, channel: Channel
) -> dict[str, Any]:
    """Write down the kernels of a program that is not built."""
    cache, point = Cache(Path(root)), Point.of(content)
    operators: Sequence[Operator] = ()
    if not point.compiler_class.lowers:
        operators = at_batch(read_operators(load_verified(cache, "network", network_key).folder), point.batch)
    kernels = kernels_of(point, lambda: restore_network(cache, network_key, point), operators)
    with cache.create("kernels", kernels_key) as (folder, _):
        (folder / KERNELS_FILE).write_text(json.dumps(kernels, separators=(",", ":")), encoding="utf-8")
    return {}


def kernels_of(point: Point, network: Callable[[], Network], operators: Sequence[Operator]) -> list[Layer]:
    """Return what a point's compiler tells of a network, as :meth:`dlas.stack.Backend.kernels` describes."""
    compiler: Backend = point.compiler.make("compiler")
    device: Hardware = point.hardware.make("hardware")
    return compiler.kernels(
        network, operators, lambda: point.algorithm.make("algorithm"), device.target(), point.batch
    )
