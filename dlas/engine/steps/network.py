"""Make a network: train or load it, or compress the one before it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlas.engine.steps.artifacts import saved
from dlas.engine.steps.samples import save_sample
from dlas.processes.interface import Channel
from dlas.stack import Compression, Workspace
from dlas.store.cache import Cache
from dlas.study.point import Point


def run(
    content: dict[str, Any], root: str, key: str, passed: list[dict[str, Any]], channel: Channel
) -> dict[str, Any]:
    """Make a network: train or load the dense one, or compress the last of those that were ``passed``."""
    cache, point = Cache(Path(root)), Point.of(content)
    data = point.dataset.make("dataset").load()
    workspace = Workspace(point.seed, cache.workspace(key), channel.say)
    if passed:
        compression: Compression = point.compression.make("compression")
        candidates = [saved(cache, each["key"], Point.of(each["content"])) for each in passed]
        network = compression.choose(candidates)
        network = network or compression.compress(candidates[-1].restore(), data, workspace)
    else:
        network = point.model.make("model").build(data, workspace)
    with cache.create("network", key) as (folder, facts):
        network.save(folder)
        save_sample(network, data, folder)
        facts.update(asdict(network.facts), tolerance=network.tolerance)
    cache.drop_workspace(key)
    return {}
