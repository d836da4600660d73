"""Planning: the steps that a point needs, and the keys of what they make.

    network -> [compress ...] -> [tune] -> build -> memory -> check -> measure -> row
                             `-> kernels, of a point that is predicted

The steps themselves, which run in child processes, are in ``steps/``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dlas.bench.store import fingerprint
from dlas.bench.store.fingerprint import SourceTree
from dlas.errors import Unreachable
from dlas.stack import TRAINING, MeasureSettings, Part, TuningCompiler
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
STEPS = "dlas.sweep.engine.steps"
STEP_AXES: dict[str, tuple[str, ...]] = {
    "network": ("dataset", "model", "compression"),
    "kernels": ("algorithm", "compiler"),
    "tune": ("algorithm", "compiler"),
    "build": ("algorithm", "compiler"),
    "memory": (),
    "check": (),
    "measure": ("hardware",),
}
"""The axes whose parts work in a step."""
PLUMBING = ("dlas.bench.processes", "dlas.bench.remote", "dlas.bench.store", "dlas.sweep.study")
"""Packages that find parts, run steps, reach boards and store artifacts: keys omit what affects no result."""


@dataclass(frozen=True)
class Step:
    """One step of a point."""

    name: str
    """``network``, ``kernels``, ``tune``, ``build``, ``memory``, ``check`` or ``measure``."""
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

    @property
    def function(self) -> str:
        """The function to run, ``package.module:function``."""
        return f"{STEPS}.{self.name}:run"

    @property
    def time_limit(self) -> str:
        """The name of the study's limit of its seconds; ``memory`` is one of bytes."""
        return {"memory": "check", "kernels": "build"}.get(self.name, self.name)


@dataclass(frozen=True)
class Plan:
    """A point's steps before measuring, its measurement, and the key of its row."""

    steps: tuple[Step, ...]
    measure: Step
    key: str
    kernels: Step | None = None
    """Tells the kernels of a program that is not built; None where they follow from operators alone."""

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
        self._target = functools.cache(_target)
        self._recorded_as = functools.cache(_recorded_as)

    def plan(self, point: Point) -> Plan:
        """Return all steps of ``point``."""
        networks = self._networks(replace(point, algorithm=NONE, compiler=NONE, hardware=NONE, batch=0))
        network_key = networks[-1].key
        tunes = issubclass(point.compiler_class, TuningCompiler)
        tuning_key = self._tuning_key(point, network_key) if tunes else None
        build_key = self._build_key(point, network_key, tuning_key)
        common = {"content": point.content(), "root": str(self.root), "network_key": network_key}
        tuned, built = {**common, "tuning_key": tuning_key}, {**common, "build_key": build_key}
        slow = (OPTIMISERS_IMPORT,) if point.task == TRAINING else ()
        steps = [
            *networks,
            Step("build", build_key, {**tuned, **built}, "build"),
            Step("memory", build_key, built, fresh=True, imports=slow),
            # A device elsewhere is used by one step at a time.
            Step("check", build_key, built, alone=not point.device.local, imports=("scipy.stats", *slow)),
        ]
        if tuning_key:
            steps.insert(-3, Step("tune", tuning_key, tuned, "tuning", alone=True))
        measure = Step("measure", build_key, {**built, "settings": asdict(self.settings)}, imports=slow)
        kernels = self._kernels_step(point, common) if point.compiler_class.lowers else None
        return Plan(tuple(steps), measure, self._row_key(point, build_key), kernels)

    def modules(self, step: str, point: Point) -> frozenset[str]:
        """Return the modules that affect a step: its own and its parts', with their imports."""
        own = {type(part).__module__ for axis in STEP_AXES[step] for part in _working_parts(axis, point)}
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
            tools=fingerprint.versions(NETWORK_TOOLS),
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
        imports = (*point.dataset_part.imports(), *maker.imports())
        return Step("network", key, arguments, "network", imports=imports)

    def _tuning_key(self, point: Point, network_key: str) -> str:
        """Return the key of a search: with the same key, records give the same schedules."""
        return fingerprint.key(
            network=network_key,
            batch=point.batch,
            target=self._target(point.hardware),
            device=self._recorded_as(point.hardware),
            tools=fingerprint.versions(TUNE_TOOLS),
            **self._key_content("tune", point),
        )

    def _kernels_step(self, point: Point, common: dict[str, Any]) -> Step:
        """Return the step that lowers the network up to its kernels."""
        key = fingerprint.key(
            network=common["network_key"],
            batch=point.batch,
            target=self._target(point.hardware),
            tools=fingerprint.versions(BUILD_TOOLS),
            **self._key_content("kernels", point),
        )
        return Step("kernels", key, {**common, "kernels_key": key}, "kernels")

    def _build_key(self, point: Point, network_key: str, tuning_key: str | None) -> str:
        return fingerprint.key(
            network=network_key,
            tuning=tuning_key,
            batch=point.batch,
            target=self._target(point.hardware),
            tools=fingerprint.versions((*BUILD_TOOLS, *point.compiler_part.packages())),
            **self._key_content("build", point),
        )

    def _row_key(self, point: Point, build_key: str) -> str:
        modules = (self.modules(step, point) for step in ("memory", "check", "measure"))
        code = self._digest(frozenset().union(*modules))
        return fingerprint.key(id=point.id, build=build_key, settings=asdict(self.settings), code=code)

    def _key_content(self, step: str, point: Point) -> dict[str, Any]:
        """Return the content of a key from a step and its parts: options, code, and the files they read."""
        workers = [part for axis in STEP_AXES[step] for part in _working_parts(axis, point)]
        return {
            "options": [getattr(point, axis).content() for axis in STEP_AXES[step]],
            "code": self._digest(self.modules(step, point)),
            "files": fingerprint.file_digests(path for part in workers for path in part.files()),
        }


def _working_parts(axis: str, point: Point) -> Iterator[Part]:
    """Yield the part on an axis and its delegates; none for a runtime's own kernels."""
    choice = getattr(point, axis)
    if (axis, choice.name) != ("algorithm", parts.LIBRARY):
        yield from _with_delegates(choice.make(axis))


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
