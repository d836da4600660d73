"""Search for the schedules of a network on its device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.stack import Bench, Hardware, TuningCompiler, Workspace
from dlas.sweep.engine.steps.artifacts import restore_network
from dlas.sweep.study.point import Point


def run(
    content: dict[str, Any], root: str, network_key: str, tuning_key: str, channel: Channel
) -> dict[str, Any]:
    """Search for the network's schedules, alone on the device; recorded trials are not repeated."""
    cache, point = Cache(Path(root)), Point.of(content)
    compiler: TuningCompiler = point.compiler.make("compiler")  # type: ignore[assignment] # others plan none
    algorithm = point.algorithm.make("algorithm")
    workspace = Workspace(point.seed, cache.workspace(tuning_key), channel.say)
    device: Hardware = point.hardware.make("hardware")
    bench = Bench(device, cache.records, workspace)
    network = restore_network(cache, network_key, point)
    with cache.create("tuning", tuning_key) as (folder, facts):
        facts.update(compiler.tune(network, algorithm, point.batch, bench, folder))
    cache.drop_workspace(tuning_key)
    return {}
