"""Planning: the steps that a point needs, and the keys of what they make.

    network -> [compress ...] -> [tune] -> build -> memory -> check -> [count] -> measure -> row
                             `-> kernels, of a point that is predicted
                                 `-> simulate -> row, of a device that is simulated

The steps themselves, which run in child processes, are in ``steps/``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dlas.bench.store import fingerprint
from dlas.bench.store.fingerprint import SourceTree
from dlas.errors import Unreachable
from dlas.stack import (
    PART_AXES,
    TRAINING,
    Hardware,
    MeasureSettings,
    Part,
    SimulatedHardware,
    TuningCompiler,
)
from dlas.sweep.study import parts
from dlas.sweep.study.point import NONE, Choice, Point

NETWORK_TOOLS = (
    "python",
    "torch",
    "torchvision",
    "torch-pruning",
    "pytorch-lightning",
    "scikit-learn",
    "numpy",
    "onnxruntime",
)
BUILD_TOOLS = ("python", "apache-tvm", "apache-tvm-ffi", "torch", "onnx", "onnxruntime", "numpy")
TUNE_TOOLS = (*BUILD_TOOLS, "xgboost")
OPTIMISERS_IMPORT = "torch._dynamo"
"""What torch imports with the first optimiser, which takes over a second."""
TRAINER = "pytorch_lightning"
"""What a part imports whose options allow training."""
STEPS = "dlas.sweep.engine.steps"
STEP_AXES: dict[str, tuple[str, ...]] = {
    "network": ("dataset", "model", "compression"),
    "kernels": ("algorithm", "compiler"),
    "tune": ("algorithm", "compiler"),
    "build": ("algorithm", "compiler"),
    "memory": (),
    "check": (),
    "count": (),
    "measure": ("hardware",),
    "simulate": ("hardware",),
}
"""The axes whose parts work in a step."""
ROW_STEPS = ("memory", "check", "measure")
"""The steps whose code a row depends on, beside its build."""
OWN_KERNELS = ("algorithm", parts.LIBRARY)
Choices = tuple[tuple[str, Choice], ...]
"""Choices by axis."""
PLUMBING = ("dlas.bench.processes", "dlas.bench.remote", "dlas.bench.store", "dlas.sweep.study")
"""Packages that find parts, run steps, reach boards and store artifacts: keys omit what affects no result."""


@dataclass(frozen=True)
class Step:
    """One step of a point."""

    name: str
    """``network``, ``kernels``, ``tune``, ``build``, ``memory``, ``check``, ``count`` or ``measure``."""
    key: str
    """Of the artifact that it makes, or of its input if it makes none."""
    arguments: dict[str, Any]
    """Its JSON-able arguments."""
    kind: str | None = None
    """Kind of the artifact that it makes, if any."""
    alone: bool = False
    """Whether it needs exclusive use of the device."""
    fresh: bool = False
    """Whether it must be the first in its process."""
    imports: tuple[str, ...] = ()
    """Its slow imports."""
    trains: bool = False
    """Whether it may train a network."""
    needs: tuple[tuple[str, str], ...] = ()
    """Kinds and keys of the artifacts that it makes its own from."""
    module: str = ""
    """Its file in ``steps/``, where that has another name."""

    @property
    def function(self) -> str:
        """The function to run, ``package.module:function``."""
        return f"{STEPS}.{self.module or self.name}:run"

    @property
    def time_limit(self) -> str:
        """The name of the study's limit of its seconds; ``memory`` is one of bytes."""
        if self.name == "network" and not self.trains:
            return "conversion"
        return {"memory": "check", "kernels": "build", "count": "build"}.get(self.name, self.name)


@dataclass(frozen=True)
class Plan:
    """What a sweep needs of a point: which it is, its steps, its device, and the key of its row."""

    id: str
    """The point's."""
    content: dict[str, Any]
    """The point as rows store it."""
    comparison: tuple[object, ...]
    """Equal for points that are compared with each other, so that they are measured in turns."""
    device: Hardware
    """What it is tuned for and measured on."""
    steps: tuple[Step, ...]
    """Those before measuring."""
    measure: Step
    key: str
    """The row's."""
    kernels: Step | None = None
    """Tells the kernels of a program that is not built; None where it was not asked for, or they follow from
    operators alone.
    """

    sources: dict[str, str] = field(default_factory=dict)
    """Digest of the code of each axis's part with what it imports."""

    def artifacts(self) -> dict[str, str]:
        """Return the keys of the network, tuning and build artifacts, by kind."""
        return {step.kind: step.key for step in self.steps if step.kind}

    def until(self, last: str) -> Plan:
        """Return the plan without the steps after ``last``, the name of one before measuring."""
        order = tuple(STEP_AXES)
        kept = order[: order.index(last) + 1]
        steps = tuple(step for step in self.steps if step.name in kept)
        return replace(self, steps=(*steps, self.kernels) if last == "kernels" and self.kernels else steps)


class Planner:
    """Plans the steps of points, and computes the keys of their artifacts.

    Parameters
    ----------
    settings : MeasureSettings
        Of the measurement; they affect the row's key only.
    root : Path
        The cache folder.
    code : SourceTree, optional
        The sources that keys are computed from.
    """

    def __init__(self, settings: MeasureSettings, root: Path, code: SourceTree | None = None) -> None:
        self.settings, self.root = settings, root
        self._code = code or SourceTree()
        self._digest = functools.cache(self._code.digest)
        self._closure = functools.cache(functools.partial(self._code.closure, outside=PLUMBING))
        self._networks = functools.lru_cache(maxsize=1024)(self._network_steps)
        self._content = functools.cache(self._code_and_files)
        self._row_code = functools.cache(self._code_of_row)
        self._source = functools.cache(self._source_of)
        self._settings = {name: value for name, value in asdict(settings).items() if value is not False}
        self._versions = functools.cache(fingerprint.versions)
        self._target = functools.cache(_target)
        self._recorded_as = functools.cache(_recorded_as)

    def plan(self, point: Point, *, kernels: bool = False) -> Plan:
        """Return all steps of ``point``; with ``kernels`` also what tells those of a program not built."""
        content = point.content()
        networks = self._networks(replace(point, algorithm=NONE, compiler=NONE, hardware=NONE, batch=0))
        network_key = networks[-1].key
        common = {"content": content, "root": str(self.root), "network_key": network_key}
        if isinstance(point.device, SimulatedHardware):
            return self._simulated(point, networks, common)
        tunes = issubclass(point.compiler_class, TuningCompiler)
        tuning_key = self._tuning_key(point, network_key) if tunes else None
        build_key = self._build_key(point, network_key, tuning_key)
        tuned, built = {**common, "tuning_key": tuning_key}, {**common, "build_key": build_key}
        slow = (OPTIMISERS_IMPORT,) if point.task == TRAINING else ()
        needs = (("network", network_key), *((("tuning", tuning_key),) if tuning_key else ()))
        steps = [
            *networks,
            Step("build", build_key, {**tuned, **built}, "build", needs=needs),
            Step("memory", build_key, built, fresh=True, imports=slow),
            # A device elsewhere is used by one step at a time.
            Step("check", build_key, built, alone=not point.device.local, imports=("scipy.stats", *slow)),
        ]
        if tuning_key:
            steps.insert(-3, Step("tune", tuning_key, tuned, "tuning", alone=True))
        if self._counts(point):
            steps.append(Step("count", build_key, {**tuned, **built}))
        measure = Step("measure", build_key, {**built, "settings": self._settings}, imports=slow)
        lowered = self._kernels_step(point, common) if kernels and point.compiler_class.lowers else None
        return Plan(
            id=point.id,
            content=content,
            comparison=comparison(point, self.settings),
            device=point.device,
            steps=tuple(steps),
            measure=measure,
            key=self._row_key(point, build_key),
            kernels=lowered,
            sources=self._sources(point),
        )

    def _simulated(self, point: Point, networks: Sequence[Step], common: dict[str, Any]) -> Plan:
        """Return the steps of a point whose device runs nothing: its kernels are told, none is built."""
        kernels = self._kernels_step(point, common)
        told = {"content": common["content"], "root": common["root"], "kernels_key": kernels.key}
        arguments = {**told, "settings": self._settings}
        code = self._row_code(("simulate", _choices("simulate", point)))
        return Plan(
            id=point.id,
            content=common["content"],
            comparison=comparison(point, self.settings),
            device=point.device,
            steps=(*networks, kernels),
            measure=Step("measure", kernels.key, arguments, module="simulate"),
            key=fingerprint.key(id=point.id, kernels=kernels.key, settings=self._settings, code=code),
            sources=self._sources(point),
        )

    def modules(self, step: str, point: Point) -> frozenset[str]:
        """Return the modules that affect a step: its own and its parts', with their imports."""
        return self._modules(step, _workers(_choices(step, point)))

    def _modules(self, step: str, workers: Iterable[Part]) -> frozenset[str]:
        """Return the modules that affect a step, from the parts that work in it."""
        own = {type(part).__module__ for part in workers}
        return self._closure(frozenset({f"{STEPS}.{step}", *own}))

    def _network_steps(self, point: Point) -> tuple[Step, ...]:
        """Return the steps that make the network, starting with the dense one; studies share them."""
        labelled = point.dataset_class.labelled
        dense = replace(point, compression=NONE)
        steps = [self._network_step(dense, None, ())]
        for choices in point.compression.milestones(labelled) if point.compression != NONE else ():
            start = len(steps)
            for choice in choices:
                next_point = replace(point, compression=choice)
                steps.append(self._network_step(next_point, steps[-1], steps[start - 1 :]))
        return tuple(steps)

    def _network_step(self, point: Point, before: Step | None, predecessors: Sequence[Step]) -> Step:
        """Return the step that makes the dense network, or that compresses the network of ``before``.

        ``predecessors`` are the network that its last technique starts from, and its milestones so far.
        """
        key = fingerprint.key(
            before=before.key if before else None,
            seed=point.seed,
            tools=self._versions(NETWORK_TOOLS),
            **self._key_content("network", point),
        )
        networks = [{"key": step.key, "content": step.arguments["content"]} for step in predecessors]
        arguments = {
            "content": point.content(),
            "root": str(self.root),
            "key": key,
            "predecessors": networks,
        }
        maker: Part = point.compression_part if predecessors else point.model_part
        own = maker.imports()
        trains = TRAINER in own and point.dataset_class.labelled
        imports = (*point.dataset_part.imports(), *own)
        needs = tuple(("network", step.key) for step in predecessors)
        return Step("network", key, arguments, "network", imports=imports, trains=trains, needs=needs)

    def _tuning_key(self, point: Point, network_key: str) -> str:
        """Return the key of a search: with the same key, records give the same schedules."""
        return fingerprint.key(
            network=network_key,
            batch=point.batch,
            target=self._target(point.hardware),
            device=self._recorded_as(point.hardware),
            tools=self._versions(TUNE_TOOLS),
            **self._key_content("tune", point),
        )

    def _kernels_step(self, point: Point, common: dict[str, Any]) -> Step:
        """Return the step that lowers the network up to its kernels."""
        key = fingerprint.key(
            network=common["network_key"],
            batch=point.batch,
            target=self._target(point.hardware),
            tools=self._versions(BUILD_TOOLS),
            **self._key_content("kernels", point),
        )
        return Step("kernels", key, {**common, "kernels_key": key}, "kernels")

    def _build_key(self, point: Point, network_key: str, tuning_key: str | None) -> str:
        return fingerprint.key(
            network=network_key,
            tuning=tuning_key,
            batch=point.batch,
            target=self._target(point.hardware),
            tools=self._versions((*BUILD_TOOLS, *point.compiler_part.packages())),
            **self._key_content("build", point),
        )

    def _counts(self, point: Point) -> bool:
        """Return whether callgrind counts a point's instructions: it can those of our programs, here."""
        own = point.compiler_class.lowers and point.task != TRAINING
        target, here = point.device.target(), point.device.in_process
        return self.settings.callgrind and own and here and target.on_processors and not target.on_webassembly

    def _row_key(self, point: Point, build_key: str) -> str:
        steps = (*ROW_STEPS, "count") if self._counts(point) else ROW_STEPS
        code = self._row_code(*((step, _choices(step, point)) for step in steps))
        return fingerprint.key(id=point.id, build=build_key, settings=self._settings, code=code)

    def _key_content(self, step: str, point: Point) -> dict[str, Any]:
        """Return the content of a key from a step and its parts: options, code, and the files they read."""
        choices = _choices(step, point)
        return {"options": [choice.content() for _, choice in choices], **self._content(step, choices)}

    def _code_of_row(self, *steps: tuple[str, Choices]) -> str:
        """Return the digest of the code of the steps between a build and its row."""
        modules = (self._modules(step, _workers(own)) for step, own in steps)
        return self._digest(frozenset().union(*modules))

    def _sources(self, point: Point) -> dict[str, str]:
        """Return the digests of the code of a point's parts, by axis."""
        return {axis: self._source(axis, getattr(point, axis)) for axis in PART_AXES}

    def _source_of(self, axis: str, choice: Choice) -> str:
        """Return the digest of the code of a part with what it imports; empty if it has none."""
        own = frozenset(type(part).__module__ for part in _workers(((axis, choice),)))
        return self._digest(self._closure(own))[:16] if own else ""

    def _code_and_files(self, step: str, choices: Choices) -> dict[str, Any]:
        """Return the digests of a step's code and of the files that its parts read."""
        workers = _workers(choices)
        files = fingerprint.file_digests(path for part in workers for path in part.files())
        return {"code": self._digest(self._modules(step, workers)), "files": files}


def comparison(point: Point, settings: MeasureSettings) -> tuple[object, ...]:
    """Return what the points that take turns on a device have in common."""
    if settings.across_networks:
        return (point.hardware, point.task)
    return (point.dataset, point.model, point.hardware, point.batch, point.task)


def _choices(step: str, point: Point) -> Choices:
    """Return what a point chooses on the axes whose parts work in a step."""
    return tuple((axis, getattr(point, axis)) for axis in STEP_AXES[step])


def _workers(choices: Choices) -> list[Part]:
    """Return the parts that work in a step, with their delegates; none for a runtime's own kernels."""
    chosen = [choice.make(axis) for axis, choice in choices if (axis, choice.name) != OWN_KERNELS]
    return [worker for part in chosen for worker in _with_delegates(part)]


def _with_delegates(part: Part) -> Iterator[Part]:
    """Yield a part and all its delegates."""
    yield part
    for delegate in part.delegates():
        yield from _with_delegates(delegate)


def _target(hardware: Choice) -> dict[str, Any]:
    device = hardware.make("hardware")
    return {} if device.unsupported() else asdict(device.target())


def _recorded_as(hardware: Choice) -> dict[str, Any]:
    """Return what searches know a device by; of one that is away, its own parts, which no other has."""
    device = hardware.make("hardware")
    try:
        return {} if device.unsupported() else device.recorded_as()
    except Unreachable:
        return {"away": str(hardware)}
