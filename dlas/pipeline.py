"""The orchestrator: a point to its artifacts, its artifacts to a row.

    network -> [compress] -> [tune] -> build -> check -> measure -> row

This file is meant to stay so short that it is the diagram.  Every function
named ``*_step`` runs in a child process and takes and returns plain JSON.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from dlas import fingerprint, parts
from dlas.cache import Artifact, Cache, CorruptArtifact
from dlas.intervals import wilson
from dlas.measuring import PeakMemory, Settings
from dlas.environment import environment
from dlas.processes import Channel
from dlas.results import Row
from dlas.stack import Compiler, Facts, Hardware, Images, Network, Program, Workspace
from dlas.study import Choice, Point

NETWORK_TOOLS = ("python", "torch", "torchvision", "pytorch-lightning", "scikit-learn", "numpy", "onnxruntime")
BUILD_TOOLS = ("python", "apache-tvm", "apache-tvm-ffi", "torch", "onnx", "onnxruntime", "numpy")
SAMPLE_IMAGES = 256
SAMPLE_BYTES = 64 * 2**20
"""At most so many test images, in at most so many bytes, go with a network for checking its builds."""
CHECK_SECONDS = 60.0
"""A slow build is checked on as many of them as it gets through in this time, and on one batch at least."""
LAYER_REPEATS = 20
NONE = Choice("none")


class WrongOutput(Exception):
    """A build does not compute what its network's reference function computes."""


# ---------------------------------------------------------------- which artifacts a point needs


@dataclass(frozen=True)
class Step:
    """One process's worth of work.

    Parameters
    ----------
    name : str
        ``network``, ``build``, ``check`` or ``measure``.
    key : str
        Of the artifact it makes; of what it works on where it makes none.
    task : str
        The function to run, ``package.module:function``.
    arguments : dict
        Its JSON-able arguments.
    kind : str or None
        Kind of the artifact that it makes, None where it makes none.
    """

    name: str
    key: str
    task: str
    arguments: dict[str, Any]
    kind: str | None = None


@dataclass(frozen=True)
class Plan:
    """A point's steps before measuring, its measurement, and the key its row will carry."""

    steps: tuple[Step, ...]
    measure: Step
    key: str

    def artifacts(self) -> dict[str, str]:
        """Return the key of the network's and of the build's artifact."""
        return {step.kind: step.key for step in self.steps if step.kind}


def plan(point: Point, settings: Settings, root: Path) -> Plan:
    """Return what has to be done for ``point``.

    Parameters
    ----------
    point : Point
    settings : Settings
        Of the measurement; they reach the row's key only.
    root : Path
        The cache folder.
    """
    common = {"content": point.content(), "root": str(root)}
    networks = list(_network_steps(replace(point, algorithm=NONE, compiler=NONE, hardware=NONE, batch=0), root))
    build_key = _build_key(point, networks[-1].key)
    keys = {"network_key": networks[-1].key, "build_key": build_key}
    build = Step("build", build_key, "dlas.pipeline:build_step", {**common, **keys}, "build")
    check = Step("check", build_key, "dlas.pipeline:check_step", {**common, **keys})
    measure = Step(
        "measure",
        build_key,
        "dlas.pipeline:measure_step",
        {**common, **keys, "settings": asdict(settings)},
    )
    return Plan((*networks, build, check), measure, _row_key(point, build_key, settings))


@functools.lru_cache(maxsize=1024)
def _network_steps(point: Point, root: Path) -> tuple[Step, ...]:
    """Return the steps that make the network; all that compression levels share is a step of its own."""
    dense = replace(point, compression=NONE)
    dense_key = _network_key(dense, None)
    task = "dlas.pipeline:network_step"
    arguments: dict[str, Any] = {"root": str(root), "dense_key": None}
    steps = [Step("network", dense_key, task, {**arguments, "key": dense_key, "content": dense.content()}, "network")]
    if point.compression != NONE:
        key = _network_key(point, dense_key)
        arguments = {**arguments, "key": key, "dense_key": dense_key, "content": point.content()}
        steps.append(Step("network", key, task, arguments, "network"))
    return tuple(steps)


def _network_key(point: Point, dense_key: str | None) -> str:
    made_by = [point.dataset.make("dataset"), point.model.make("model"), point.compression.make("compression")]
    return fingerprint.key(
        dense=dense_key,
        options=[choice.content() for choice in (point.dataset, point.model, point.compression)],
        files=fingerprint.outside_files(_option_values(point.dataset, point.model, point.compression)),
        seed=point.seed,
        code=_sources(tuple(type(part).__module__ for part in made_by)),
        tools=_versions(NETWORK_TOOLS),
    )


def _build_key(point: Point, network_key: str) -> str:
    algorithm = () if point.algorithm.name == parts.LIBRARY else (type(point.algorithm.make("algorithm")).__module__,)
    compiler = type(point.compiler.make("compiler")).__module__
    return fingerprint.key(
        network=network_key,
        options=[point.algorithm.content(), point.compiler.content()],
        files=fingerprint.outside_files(_option_values(point.algorithm, point.compiler)),
        batch=point.batch,
        target=_target(point.hardware),
        code=_sources((*algorithm, compiler)),
        tools=_versions(BUILD_TOOLS),
    )


def _row_key(point: Point, build_key: str, settings: Settings) -> str:
    driver = type(point.hardware.make("hardware")).__module__
    return fingerprint.key(
        id=point.id, build=build_key, settings=asdict(settings), code=_sources((driver, "dlas.measuring"))
    )


def _option_values(*choices: Choice) -> list[Any]:
    links = [link for choice in choices for link in (choice.chain or (choice,))]
    return [value for link in links for _, value in link.options]


_sources = functools.cache(fingerprint.sources)
_versions = functools.cache(fingerprint.versions)


@functools.cache
def _target(hardware: Choice) -> dict[str, Any]:
    device: Hardware = hardware.make("hardware")
    return {} if device.unsupported() else asdict(device.target())


# ---------------------------------------------------------------- from what happened to a row


def row(
    study: str,
    point: Point,
    made: Plan,
    cache: Cache,
    *,
    status: str,
    reason: str | None,
    step: str | None,
    found: Mapping[str, Any],
    seconds: Mapping[str, float],
    started: str,
) -> Row:
    """Return the row for a point that came to its end, however it did.

    Parameters
    ----------
    status, reason, step : str or None
        As in :class:`dlas.results.Row`.
    found : mapping
        What check and measure returned, as far as they were reached.
    seconds : mapping
        Seconds each step took; a step that found its artifact took none.
    """
    artifacts = made.artifacts()
    network = _facts(cache, "network", artifacts)
    built = _facts(cache, "build", artifacts)
    found = dict(found)
    times = found.pop("layer_seconds", None) or {}
    layers = [{**layer, "latency_s": times.get(layer["name"])} for layer in built.get("layers", [])]
    known = set(layer["name"] for layer in layers)
    layers += [{"name": name, "latency_s": time_s} for name, time_s in times.items() if name not in known]
    measured = {name: value for name, value in found.items() if name in Row.__dataclass_fields__}
    kept = ("accuracy", "validation_accuracy", "note", "reached", "parameters", "nonzeros", "macs", "model_bytes")
    return Row(
        **point.content(),
        **measured,
        **{name: network[name] for name in kept if name in network},
        id=point.id,
        key=made.key,
        study=study,
        status=status,
        reason=reason,
        step=step,
        layers=layers,
        coverage=built.get("coverage"),
        library_bytes=built.get("library_bytes"),
        expected_speedup=_expected_speedup(network["reached"]) if network else None,
        seconds=dict(seconds),
        artifacts=artifacts,
        measure=made.measure.arguments["settings"],
        environment=environment(),
        started=started,
    )


def _facts(cache: Cache, kind: str, artifacts: Mapping[str, str]) -> dict[str, Any]:
    artifact = cache.get(kind, artifacts[kind]) if kind in artifacts else None
    return artifact.facts if artifact else {}


def _expected_speedup(reached: Mapping[str, Any]) -> float:
    """Return what the compression promises: 1 / (1 - ratio) for pruning, 32 / bits for types.

    References
    ----------
    DLAS, section 5.1.2.
    """
    if "bits" in reached:
        return 32 / float(reached["bits"])
    return 1 / (1 - min(float(reached.get("ratio", 0)), 1 - 1e-9))


# ---------------------------------------------------------------- the steps, each in its own process


def network_step(
    content: dict[str, Any], root: str, key: str, dense_key: str | None, channel: Channel
) -> dict[str, Any]:
    """Make a network: train or load it, or compress the dense one."""
    cache, point = Cache(Path(root)), Point.of(content)
    data = point.dataset.make("dataset").load()
    workspace = Workspace(point.seed, cache.workspace(key), channel.say)
    if dense_key is None:
        network = point.model.make("model").build(data, workspace)
    else:
        dense = _restored(cache, dense_key, replace(point, compression=NONE))
        network = point.compression.make("compression").compress(dense, data, workspace)
    with cache.create("network", key) as (folder, facts):
        network.save(folder)
        _save_sample(network, data, folder)
        facts.update(asdict(network.facts), tolerance=network.tolerance)
    cache.drop_workspace(key)
    return {}


def build_step(
    content: dict[str, Any], root: str, network_key: str, build_key: str, channel: Channel
) -> dict[str, Any]:
    """Compile the network for the target."""
    cache, point = Cache(Path(root)), Point.of(content)
    compiler: Compiler = point.compiler.make("compiler")
    algorithm = None if compiler.own_kernels else point.algorithm.make("algorithm")
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    network = _restored(cache, network_key, point)
    with cache.create("build", build_key) as (folder, facts):
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


def _restored(cache: Cache, key: str, point: Point) -> Network:
    artifact = _verified(cache, "network", key)
    known = {name: value for name, value in artifact.facts.items() if name in Facts.__dataclass_fields__}
    facts = Facts(**{**known, "shape": tuple(known["shape"])})
    return point.compression.make("compression").restore(point.model.make("model"), artifact.folder, facts)


def _loaded(cache: Cache, network_key: str, build_key: str, point: Point) -> Program:
    """Return the build as a program; the network itself is restored only if the compiler asks for it."""
    device: Hardware = point.hardware.make("hardware")
    device.prepare()
    folder = _verified(cache, "build", build_key).folder
    network = functools.cache(lambda: _restored(cache, network_key, point))
    return point.compiler.make("compiler").load(folder, network, device.target())


def _save_sample(network: Network, data: Any, folder: Path) -> None:
    """Keep some test images with their labels and reference outputs beside the network."""
    count = max(1, min(SAMPLE_IMAGES, len(data.test), SAMPLE_BYTES // (4 * int(np.prod(data.shape)))))
    chosen = np.random.default_rng(0).permutation(len(data.test))[:count]
    images, labels = data.test[[int(index) for index in chosen]]
    outputs = network.reference(images)
    save_file({"images": images, "labels": labels, "outputs": outputs}, folder / "sample.safetensors")


def _sample(cache: Cache, network_key: str) -> dict[str, Any]:
    return load_file(_verified(cache, "network", network_key).folder / "sample.safetensors")


def _batch(images: Images, batch: int) -> Images:
    """Return exactly ``batch`` images, repeating them where there are fewer."""
    return np.ascontiguousarray(np.resize(images, (batch, *images.shape[1:])))


def _run_in_batches(program: Program, images: Images, batch: int) -> Images:
    """Return the outputs for as many images as there is time for, through a fixed batch size."""
    outputs = []
    end = time.monotonic() + CHECK_SECONDS
    for start in range(0, len(images), batch):
        chunk = images[start : start + batch]
        outputs.append(program.run(_batch(chunk, batch))[: len(chunk)])
        if time.monotonic() > end:
            break
    return np.concatenate(outputs)
