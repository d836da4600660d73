"""Time a build."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlas.bench.clocks.turns import held_turns
from dlas.bench.measuring.addresses import addresses, on_own_stack
from dlas.bench.measuring.memory import ResidentMemory
from dlas.bench.measuring.taken import Taken, Turn
from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.bench.store.keeping import keep
from dlas.stack import TRAINING, Hardware, Layer, MeasureSettings
from dlas.sweep.engine.steps.programs import load_program
from dlas.sweep.engine.steps.samples import load_batch
from dlas.sweep.study.point import Point


@on_own_stack
def run(
    content: dict[str, Any],
    root: str,
    network_key: str,
    build_key: str,
    settings: dict[str, Any],
    channel: Channel,
    slices: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Time the build, alone on its device.

    Parameters
    ----------
    slices : dict, optional
        Where slices are kept after each turn, and those of an earlier start: ``path``, ``key`` of the row,
        and ``before``, what was kept there, or None.
    """
    cache, point = Cache(Path(root)), Point.of(content)
    device: Hardware = point.hardware.make("hardware")
    images, labels = load_batch(cache, network_key, point)
    memory = ResidentMemory.start()
    program = load_program(cache, network_key, build_key, point)
    wanted = MeasureSettings(**settings)
    turn = _keeping(slices, channel, device) if slices else channel.turn
    time_layers: Callable[[int], list[Layer] | None]
    with held_turns(turn, functools.partial(device.hold_clocks, program)) as (turn, clocks):
        if point.task == TRAINING:
            training = program.training(images, labels)
            measured, time_layers = device.measure_training(training, wanted, turn), training.layers
        else:
            measured = device.measure(program, images, wanted, turn)
            time_layers = functools.partial(program.layers, images)
        resident = memory.bytes_above() if device.in_process else program.bytes_used()
        layers = None
        if wanted.layer_repeats:
            turn()
            layers = time_layers(wanted.layer_repeats)
    return {
        **measured,
        **clocks.fields(),
        "addresses": addresses() if device.in_process else None,
        "resident_bytes": resident,
        "timed_layers": layers,
        "device": {**device.describe(), **clocks.facts()},
    }


def _keeping(slices: dict[str, Any], channel: Channel, device: Hardware) -> Turn:
    """Return turns that keep what has been taken, and how long that worked and waited, in a file."""
    before = slices["before"] or {"taken": {}, "worked_s": 0.0, "waited_s": 0.0}
    describe = functools.cache(device.describe)
    begun, waited_s = time.monotonic(), 0.0

    def wait() -> None:
        nonlocal waited_s
        since = time.monotonic()
        channel.turn()
        waited_s += time.monotonic() - since

    def keep_all(taken: Taken) -> None:
        worked_s = time.monotonic() - begun - waited_s
        content = {
            "key": slices["key"],
            "device": describe(),
            "taken": taken.content(),
            "worked_s": before["worked_s"] + worked_s,
            "waited_s": before["waited_s"] + waited_s,
        }
        keep(Path(slices["path"]), content)

    return Turn(wait, keep_all, Taken.of(before["taken"]))
