"""Compile a network for its device."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.stack import Backend, Hardware
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.study.point import Point


def run(
    content: dict[str, Any],
    root: str,
    network_key: str,
    tuning_key: str | None,
    build_key: str,
    channel: Channel,
) -> dict[str, Any]:
    """Compile the network for its target, with the schedules that tuning selected if it ran."""
    cache, point = Cache(Path(root)), Point.of(content)
    compiler: Backend = point.compiler.make("compiler")
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    network = restore_network(cache, network_key, point)
    with cache.create("build", build_key) as (folder, facts):
        if tuning_key is not None:
            search = load_verified(cache, "tuning", tuning_key)
            for name in search.files:
                shutil.copyfile(search.folder / name, folder / name)
        built = compiler.build(
            network, lambda: point.algorithm.make("algorithm"), device.target(), point.batch, folder
        )
        facts.update(asdict(built))
    return {}
