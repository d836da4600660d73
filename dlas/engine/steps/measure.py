"""Time a build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlas.engine.steps.programs import load_program
from dlas.engine.steps.samples import fill_batch, load_sample
from dlas.measuring.memory import PeakMemory
from dlas.processes.interface import Channel
from dlas.stack import Hardware, MeasureSettings
from dlas.store.cache import Cache
from dlas.study.point import Point


def run(
    content: dict[str, Any],
    root: str,
    network_key: str,
    build_key: str,
    settings: dict[str, Any],
    channel: Channel,
) -> dict[str, Any]:
    """Time the build, alone on its device."""
    cache, point = Cache(Path(root)), Point.of(content)
    device: Hardware = point.hardware.make("hardware")
    images = fill_batch(load_sample(cache, network_key)["images"], point.batch)
    memory = PeakMemory.start()
    program = load_program(cache, network_key, build_key, point)
    wanted = MeasureSettings(**settings)
    measured = device.measure(program, images, wanted, channel.turn)
    peak = memory.bytes_above()
    layers = None
    if wanted.layer_repeats:
        channel.turn()
        layers = program.layers(images, wanted.layer_repeats)
    return {**measured, "peak_memory_bytes": peak, "timed_layers": layers, "device": device.describe()}
