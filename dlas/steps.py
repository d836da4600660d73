"""The steps of a point, each run in a process of its own; plain JSON in and out.

network -> [compress ...] -> [tune] -> build -> check -> measure
"""

from __future__ import annotations

import functools
import math
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from dlas.cache import Artifact, Cache, CorruptArtifact
from dlas.child import Channel
from dlas.data import Data, Images
from dlas.intervals import wilson
from dlas.measuring import PeakMemory, Settings
from dlas.point import Point
from dlas.stack import Compiler, Compression, Facts, Hardware, Kept, Network, Program, Workspace
from dlas.tuning.interface import Bench, TuningCompiler

SAMPLE_IMAGES = 256
SAMPLE_BYTES = 64 * 2**20
"""At most so many test images, in at most so many bytes, go with a network for checking its builds."""
CHECK_SECONDS = 60.0
"""A slow build is checked on as many as it gets through in this time after the first, which may compile."""
INSENSITIVE = 1e-3
"""Outputs that vary over the images by less than this share of the largest tell nothing about a build."""
INSENSITIVE_NOTE = "its outputs hardly depend on the image, so a check of its builds says little"
LAYER_REPEATS = 20


class WrongOutput(Exception):
    """A build does not compute what its network's reference function computes."""


def network_step(
    content: dict[str, Any], root: str, key: str, passed: list[dict[str, Any]], channel: Channel
) -> dict[str, Any]:
    """Make a network: train or load the dense one, or compress the last of those that were ``passed``."""
    cache, point = Cache(Path(root)), Point.of(content)
    data = point.dataset.make("dataset").load()
    workspace = Workspace(point.seed, cache.workspace(key), channel.say)
    if passed:
        compression: Compression = point.compression.make("compression")
        kept = [_kept(cache, each["key"], Point.of(each["content"])) for each in passed]
        network = compression.choose(kept) or compression.compress(kept[-1].restore(), data, workspace)
    else:
        network = point.model.make("model").build(data, workspace)
    with cache.create("network", key) as (folder, facts):
        network.save(folder)
        _save_sample(network, data, folder)
        facts.update(asdict(network.facts), tolerance=network.tolerance)
    cache.drop_workspace(key)
    return {}


def tune_step(
    content: dict[str, Any], root: str, network_key: str, tuning_key: str, channel: Channel
) -> dict[str, Any]:
    """Search for the network's schedules, alone on the device; what is on record is not tried again."""
    cache, point = Cache(Path(root)), Point.of(content)
    compiler: TuningCompiler = point.compiler.make("compiler")
    algorithm = None if compiler.own_kernels else point.algorithm.make("algorithm")
    workspace = Workspace(point.seed, cache.workspace(tuning_key), channel.say)
    bench = Bench(point.hardware.make("hardware"), cache.records, workspace)
    network = _restored(cache, network_key, point)
    with cache.create("tuning", tuning_key) as (folder, facts):
        facts.update(compiler.tune(network, algorithm, point.batch, bench, folder))
    cache.drop_workspace(tuning_key)
    return {}


def build_step(
    content: dict[str, Any],
    root: str,
    network_key: str,
    tuning_key: str | None,
    build_key: str,
    channel: Channel,
) -> dict[str, Any]:
    """Compile the network for the target, as the search decided where there was one."""
    cache, point = Cache(Path(root)), Point.of(content)
    compiler: Compiler = point.compiler.make("compiler")
    algorithm = None if compiler.own_kernels else point.algorithm.make("algorithm")
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    network = _restored(cache, network_key, point)
    with cache.create("build", build_key) as (folder, facts):
        if tuning_key is not None:
            found = _verified(cache, "tuning", tuning_key)
            for name in found.files:
                shutil.copyfile(found.folder / name, folder / name)
        built = compiler.compile(network, algorithm, device.target(), point.batch, folder)
        facts.update(asdict(built))
    return {}


def check_step(
    content: dict[str, Any], root: str, network_key: str, build_key: str, channel: Channel
) -> dict[str, Any]:
    """Compare the build with the network's reference function, and count what it classifies rightly."""
    cache, point = Cache(Path(root)), Point.of(content)
    sample = _sample(cache, network_key)
    program = _loaded(cache, network_key, build_key, point)
    outputs = _run_in_batches(program, sample["images"], point.batch)
    expected, labels = sample["outputs"][: len(outputs)], sample["labels"][: len(outputs)]
    facts = _artifact(cache, "network", network_key).facts
    scale = float(np.abs(expected).max()) or 1.0
    error = float(np.abs(outputs - expected).max()) / scale
    if not error <= facts["tolerance"]:  # a NaN is wrong too
        raise WrongOutput(f"differs from the reference by {error:.3g} of its largest output; "
                          f"at most {facts['tolerance']:.3g} is accepted")  # fmt: skip
    accuracy = None
    if facts["accuracy"] is not None:
        right = int((outputs.argmax(axis=1) == labels).sum())
        low, high = wilson(right, len(outputs))
        accuracy = {"accuracy": right / len(outputs), "low": low, "high": high, "images": len(outputs)}
    return {"error": error, "compiled_accuracy": accuracy}


def measure_step(
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
    images = _batch(_sample(cache, network_key)["images"], point.batch)
    memory = PeakMemory.start()
    program = _loaded(cache, network_key, build_key, point)
    measured = device.measure(program, images, Settings(**settings), channel.turn)
    peak = memory.bytes_above()
    channel.turn()
    layers = program.layers(images, LAYER_REPEATS)
    return {**measured, "peak_memory_bytes": peak, "layer_seconds": layers, "device": device.describe()}


# ---------------------------------------------------------------- artifacts in and out


def _artifact(cache: Cache, kind: str, key: str) -> Artifact:
    artifact = cache.get(kind, key)
    if artifact is None:
        raise CorruptArtifact(f"{kind} {key} is not in the cache any more")
    return artifact


def _verified(cache: Cache, kind: str, key: str) -> Artifact:
    """Return an artifact whose files are what was written; drop it if they are not."""
    artifact = _artifact(cache, kind, key)
    try:
        artifact.verify()
    except CorruptArtifact:
        cache.discard(kind, key)
        raise
    return artifact


def _kept(cache: Cache, key: str, point: Point) -> Kept:
    facts = _network_facts(_artifact(cache, "network", key))
    return Kept(facts, lambda: _restored(cache, key, point))


def _restored(cache: Cache, key: str, point: Point) -> Network:
    artifact = _verified(cache, "network", key)
    compression: Compression = point.compression.make("compression")
    return compression.restore(point.model.make("model"), artifact.folder, _network_facts(artifact))


def _network_facts(artifact: Artifact) -> Facts:
    known = {name: value for name, value in artifact.facts.items() if name in Facts.__dataclass_fields__}
    return Facts(**{**known, "shape": tuple(known["shape"])})


def _loaded(cache: Cache, network_key: str, build_key: str, point: Point) -> Program:
    """Return the build as a program; the network itself is restored only if the compiler asks for it."""
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    folder = _verified(cache, "build", build_key).folder
    network = functools.cache(lambda: _restored(cache, network_key, point))
    compiler: Compiler = point.compiler.make("compiler")
    return compiler.load(folder, network, device.target())


def _save_sample(network: Network, data: Data, folder: Path) -> None:
    """Keep some test images with their labels and reference outputs beside the network.

    Outputs that are the same for every image would let any build pass; the
    network's note says so.
    """
    count = max(1, min(SAMPLE_IMAGES, len(data.test), SAMPLE_BYTES // (4 * int(np.prod(data.shape)))))
    chosen = np.random.default_rng(0).permutation(len(data.test))[:count]
    images, labels = data.test[[int(index) for index in chosen]]
    outputs = network.reference(images)
    notes = [note for note in (network.facts.note or "").split("; ") if note not in ("", INSENSITIVE_NOTE)]
    if np.ptp(outputs, axis=0).max() <= INSENSITIVE * np.abs(outputs).max():
        notes.append(INSENSITIVE_NOTE)
    network.facts.note = "; ".join(notes) or None
    save_file({"images": images, "labels": labels, "outputs": outputs}, folder / "sample.safetensors")


def _sample(cache: Cache, network_key: str) -> dict[str, Any]:
    return load_file(_verified(cache, "network", network_key).folder / "sample.safetensors")


def _batch(images: Images, batch: int) -> Images:
    """Return exactly ``batch`` images, repeating them where there are fewer."""
    return np.ascontiguousarray(np.resize(images, (batch, *images.shape[1:])))


def _run_in_batches(program: Program, images: Images, batch: int) -> Images:
    """Return the outputs for as many images as there is time for, through a fixed batch size."""
    outputs: list[Images] = []
    end = math.inf
    for start in range(0, len(images), batch):
        chunk = images[start : start + batch]
        outputs.append(program.run(_batch(chunk, batch))[: len(chunk)])
        if not start:
            end = time.monotonic() + CHECK_SECONDS
        elif time.monotonic() > end:
            break
    return np.concatenate(outputs)
