"""Make a network: train or load it, or compress its predecessor."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlas.bench.measuring import allocator
from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.networks.operators import save_operators
from dlas.stack import Compression, Workspace
from dlas.sweep.engine.steps.artifacts import saved_network
from dlas.sweep.engine.steps.samples import save_sample
from dlas.sweep.study.point import Point


def run(
    content: dict[str, Any], root: str, key: str, predecessors: list[dict[str, Any]], channel: Channel
) -> dict[str, Any]:
    """Make a network: train or load the dense one, or compress the last of ``predecessors``."""
    cache, point = Cache(Path(root)), Point.of(content)
    data = point.dataset.make("dataset").load()
    workspace = Workspace(point.seed, cache.workspace(key), channel.say)
    with allocator.kept():  # each training step frees what the next one needs
        if predecessors:
            compression: Compression = point.compression.make("compression")
            candidates = [
                saved_network(cache, predecessor["key"], Point.of(predecessor["content"]))
                for predecessor in predecessors
            ]
            network = compression.choose(candidates)
            network = network or compression.compress(candidates[-1].restore(), data, workspace)
        else:
            network = point.model.make("model").build(data, workspace)
    with cache.create("network", key) as (folder, facts):
        network.save(folder)
        save_operators(network, folder)
        save_sample(network, data, folder)
        facts.update(asdict(network.facts), tolerance=network.tolerance)
    cache.drop_workspace(key)
    return {}
