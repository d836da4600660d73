"""Compile a network for its device."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.stack import Backend, Build, Hardware, Target
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
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    with cache.create("build", build_key) as (folder, facts):
        facts.update(asdict(build_into(folder, cache, point, network_key, tuning_key, device.target())))
    return {}


def build_into(
    folder: Path, cache: Cache, point: Point, network_key: str, tuning_key: str | None, target: Target
) -> Build:
    """Compile a point's network for a target into a folder, and return the facts of the build."""
    compiler: Backend = point.compiler.make("compiler")
    network = restore_network(cache, network_key, point)
    if tuning_key is not None:
        search = load_verified(cache, "tuning", tuning_key)
        for name in search.files:
            shutil.copyfile(search.folder / name, folder / name)
    return compiler.build(network, lambda: point.algorithm.make("algorithm"), target, point.batch, folder)
