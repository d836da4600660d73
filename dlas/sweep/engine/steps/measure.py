"""Time a build."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlas.bench.measuring.memory import ResidentMemory
from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.stack import TRAINING, Hardware, Layer, MeasureSettings
from dlas.sweep.engine.steps.programs import load_program
from dlas.sweep.engine.steps.samples import load_batch
from dlas.sweep.study.point import Point


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
    images, labels = load_batch(cache, network_key, point)
    memory = ResidentMemory.start()
    program = load_program(cache, network_key, build_key, point)
    wanted = MeasureSettings(**settings)
    time_layers: Callable[[int], list[Layer] | None]
    if point.task == TRAINING:
        training = program.training(images, labels)
        measured, time_layers = device.measure_training(training, wanted, channel.turn), training.layers
    else:
        measured = device.measure(program, images, wanted, channel.turn)
        time_layers = functools.partial(program.layers, images)
    resident = memory.bytes_above() if device.local else None
    layers = None
    if wanted.layer_repeats:
        channel.turn()
        layers = time_layers(wanted.layer_repeats)
    return {**measured, "resident_bytes": resident, "timed_layers": layers, "device": device.describe()}
