"""Count the instructions of a TVM program, built for processors that valgrind knows."""

from __future__ import annotations

import platform
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dlas.axes.compilers.programs import run_once
from dlas.bench.measuring import callgrind
from dlas.bench.processes.interface import Channel
from dlas.bench.store.cache import Cache
from dlas.errors import Unsupported
from dlas.stack import Hardware, Target
from dlas.sweep.engine.steps.build import build_into
from dlas.sweep.engine.steps.samples import load_batch
from dlas.sweep.study.point import Point

KNOWN = "x86-64-v3"
"""What x86-64 programs are built for: valgrind has no instructions of AVX-512."""
COUNTER = "callgrind"


def run(
    content: dict[str, Any],
    root: str,
    network_key: str,
    tuning_key: str | None,
    build_key: str,
    channel: Channel,
) -> dict[str, Any]:
    """Build the network once more, and count the instructions of one inference.

    What cannot be counted is no fault of the point: ``count_note`` says why.
    """
    cache, point = Cache(Path(root)), Point.of(content)
    device: Hardware = point.hardware.make("hardware")
    target, counter = countable(device.target())
    images, _ = load_batch(cache, network_key, point)
    with tempfile.TemporaryDirectory() as own:
        folder = Path(own)
        np.save(folder / "images.npy", images)
        (folder / "build").mkdir()
        try:
            build_into(folder / "build", cache, point, network_key, tuning_key, target)
            # The script's folder has modules with names of others.
            arguments = ["-P", run_once.__file__, str(folder / "build"), str(folder / "images.npy")]
            kernels = callgrind.count(arguments)
        except Unsupported as reason:
            return {"count_note": str(reason)}
    return {
        "counted": {
            "instructions": float(sum(kernels.values())),
            "kernel_instructions": kernels,
            "counter": counter,
        }
    }


def countable(target: Target) -> tuple[Target, str]:
    """Return the target of a program that valgrind runs, and what rows call its counter."""
    triple = str(target.description.get("mtriple", ""))
    machine = triple.partition("-")[0] or platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return target, COUNTER
    features = {"mcpu": KNOWN, "mattr": None}
    described = {**target.description, **features}
    plain = {name: value for name, value in described.items() if value is not None}
    return replace(target, description=plain), f"{COUNTER}, {KNOWN}"
