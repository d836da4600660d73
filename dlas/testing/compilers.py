"""The contract of compilers and runtimes: a build agrees with its network, and names its layers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from dlas.networks.convolutions import library_layers
from dlas.schedules.direct import Direct
from dlas.stack import (
    Algorithm,
    Backend,
    Bench,
    Build,
    Hardware,
    Images,
    Network,
    Program,
    TuningCompiler,
)
from dlas.sweep.study import parts
from dlas.testing.algorithms import HOST
from dlas.testing.faults import checking
from dlas.testing.networks import random_images, tiny_network, workspace

BATCH = 2
REPEATS = 2


def check_compiler(
    compiler: Backend,
    network: Network | None = None,
    algorithm: Algorithm | None = None,
    hardware: Hardware | None = None,
) -> None:
    """Check the contract of a compiler or a runtime, on this machine.

    - Its programs agree with the network's reference function within the network's
      tolerance, in every run and for different images.
    - A build has a layer for each convolution, by the network's names, with its
      multiply-adds; a runtime's are computed by ``library``.
    - If layers can be timed, the times include the build's layers and are in seconds.

    Parameters
    ----------
    compiler : Backend
        A compiler that tunes searches first, with its own number of trials.
    network : Network, optional
        By default a tiny network of convolutions.
    algorithm : Algorithm, optional
        By default ``direct``.
    hardware : Hardware, optional
        Device that a compiler that tunes measures candidates on; by default the processors of this machine.

    Raises
    ------
    AssertionError
    """
    network, algorithm = network or tiny_network(), algorithm or Direct()
    with checking(compiler), tempfile.TemporaryDirectory() as temporary:
        folder, target = Path(temporary, "build"), hardware.target() if hardware else HOST
        folder.mkdir()
        if isinstance(compiler, TuningCompiler):
            hardware = hardware or parts.make("hardware", "local_cpu", {"threads": 1})
            target = hardware.target()
            bench = Bench(hardware, Path(temporary, "records"), workspace(Path(temporary, "work")))
            compiler.tune(network, algorithm, BATCH, bench, folder)
        build = compiler.build(network, lambda: algorithm, target, BATCH, folder)
        _check_layers(build, compiler, network)
        program = compiler.load(folder, lambda: network, target)
        first, second = (random_images(BATCH, network.facts.shape, seed) for seed in (0, 1))
        for images in (first, first, second):
            _check_outputs(program, network, images)
        bound = program.bind(first)
        bound()
        bound()
        _check_outputs(program, network, first)
        _check_times(program, build, first)


def _check_layers(build: Build, compiler: Backend, network: Network) -> None:
    """Check that a build names the network's convolutions and counts their multiply-adds."""
    macs = {layer["name"]: layer["macs"] for layer in library_layers(network, BATCH)}
    # A build may tell its other operators too, which no algorithm computes.
    convolutions = [layer for layer in build.layers if "algorithm" in layer]
    built = {layer["name"]: layer["macs"] for layer in convolutions}
    assert sorted(built) == sorted(macs), f"it names the layers {sorted(built)}, not {sorted(macs)}"
    assert len({layer["name"] for layer in build.layers}) == len(build.layers), "two layers have one name"
    wrong = [name for name in macs if built[name] != macs[name]]
    assert not wrong, f"layer {wrong[0]!r} has {built[wrong[0]]} multiply-adds, not {macs[wrong[0]]}"
    for layer in convolutions:
        library = layer["algorithm"] == "library"
        computed = f"layer {layer['name']!r} is computed by {layer['algorithm']!r}"
        assert library == compiler.own_kernels, f"{computed}, with own_kernels = {compiler.own_kernels}"


def _check_outputs(program: Program, network: Network, images: Images) -> None:
    """Compare a program with its network's reference function."""
    outputs, expected = program.run(images), network.reference(images)
    assert outputs.shape == expected.shape, f"outputs have shape {outputs.shape}, not {expected.shape}"
    assert outputs.dtype == np.float32, f"outputs are {outputs.dtype}, not float32"
    error = float(np.abs(outputs - expected).max() / (np.abs(expected).max() or 1))
    right = error <= network.tolerance  # a NaN is not
    assert right, f"outputs differ from the reference by {error:.2g}, which is above {network.tolerance:g}"


def _check_times(program: Program, build: Build, images: Images) -> None:
    """Check the times of layers, if there are any."""
    layers = program.layers(images, REPEATS)
    if layers is None:
        return
    times = {layer["name"]: layer["latency_s"] or 0.0 for layer in layers}
    assert len(times) == len(layers), "it times two layers of one name"
    untimed = sorted({layer["name"] for layer in build.layers} - set(times))
    assert not untimed, f"it times layers, and not {', '.join(untimed)}"
    assert all(0 < seconds < 60 for seconds in times.values()), f"times of layers are not in seconds: {times}"
