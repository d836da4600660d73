"""Load builds from the cache."""

from __future__ import annotations

import functools

from dlas.bench.store.cache import Cache
from dlas.stack import Backend, Hardware, Program
from dlas.sweep.engine.steps.artifacts import load_verified, restore_network
from dlas.sweep.study.point import Point


def load_program(cache: Cache, network_key: str, build_key: str, point: Point) -> Program:
    """Return the build as a program; the network is restored only if the compiler needs it."""
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    folder = load_verified(cache, "build", build_key).folder
    network = functools.cache(lambda: restore_network(cache, network_key, point))
    compiler: Backend = point.compiler.make("compiler")
    return device.load(compiler, folder, network)
