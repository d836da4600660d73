"""TVM programs, and the compilers that write them."""

from __future__ import annotations

import json
import statistics
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tvm
from safetensors.numpy import load_file, save_file
from tvm import relax, tirx
from tvm.relax.backend.cpu_generic import pipeline
from tvm.rpc import RPCSession

from dlas.axes.compilers.programs.contents import CONTENTS, layers_of
from dlas.axes.compilers.programs.webassembly import WebAssemblyProgram
from dlas.bench.measuring.on_board import TIME_KERNELS, time_kernels
from dlas.lowering.graph.graph import OPAQUE
from dlas.lowering.kernels.kernel import Kernel
from dlas.lowering.lower import LoweredNetwork, lower, schedule
from dlas.lowering.machine_code import build_functions, pipeline_of
from dlas.lowering.target import tvm_target, write_library
from dlas.lowering.webassembly import writing
from dlas.stack import (
    Algorithm,
    Build,
    Compiler,
    Images,
    Layer,
    Network,
    Operator,
    Program,
    ScheduleChoice,
    Target,
)
from dlas.stack.engine import Engine

LIBRARY = "library.so"
PARAMETERS = "parameters.safetensors"

KernelScheduler = Callable[[Kernel, Target], tuple[tirx.PrimFunc, ScheduleChoice]]
"""Returns the scheduled PrimFunc of a kernel, and entries of the row's layer about the schedule."""


@dataclass
class ScheduledNetwork:
    """A network ready for TVM's code generation."""

    lowered: LoweredNetwork
    module: tvm.IRModule
    """``lowered.module`` with its loops scheduled."""
    layers: list[Layer]
    """The operators of ``lowered``, with the decisions of their schedules."""


class TvmCompiler(Compiler):
    """Base of compilers that build with TVM; subclasses schedule convolutions and linear layers."""

    over_rpc = True
    lowers = True

    @abstractmethod
    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the function that schedules one kernel.

        Parameters
        ----------
        folder : Path
            Holds the files of a search for schedules, if there was one.
        """

    def schedule(
        self, network: Network, algorithm: Algorithm, target: Target, batch: int, folder: Path
    ) -> ScheduledNetwork:
        """Lower a network for inputs [batch, c, h, w] and schedule its loops."""
        lowered = lower(network, algorithm, batch, target)
        schedule_one = self.scheduler(folder)
        details: dict[str, ScheduleChoice] = {}

        def scheduled(kernel: Kernel, target: Target) -> tirx.PrimFunc:
            function, details[kernel.name] = schedule_one(kernel, target)
            return function

        module = schedule(lowered, target, scheduled)
        layers: list[Layer] = [
            {**layer, **details.get(layer.get("kernel", ""), {})} for layer in lowered.operators
        ]
        return ScheduledNetwork(lowered, module, layers)

    def compile(
        self, network: Network, algorithm: Algorithm, target: Target, batch: int, folder: Path
    ) -> Build:
        """Write the library and its parameters for inputs [batch, c, h, w] into ``folder``."""
        scheduled = self.schedule(network, algorithm, target, batch, folder)
        build = write_program(scheduled.lowered, scheduled.module, target, folder)
        return replace(build, layers=scheduled.layers)

    def kernels(
        self,
        network: Callable[[], Network],
        operators: Sequence[Operator],
        algorithm: Callable[[], Algorithm],
        target: Target,
        batch: int,
    ) -> list[Layer]:
        """Return the kernels of the lowered network: TVM has fused its operators, and scheduled none."""
        return lower(network(), algorithm(), batch, target).operators

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the program in ``folder``."""
        return TvmProgram(folder, target)

    def load_in_engine(self, folder: Path, engine: Engine) -> Program:
        """Load the module in ``folder`` into an engine of WebAssembly."""
        return WebAssemblyProgram(folder, engine)

    def load_on_board(self, folder: Path, target: Target, session: RPCSession) -> Program:
        """Send the program in ``folder`` to a board; return it there."""
        return TvmProgram(folder, target, session)


def write_program(lowered: LoweredNetwork, module: tvm.IRModule, target: Target, folder: Path) -> Build:
    """Build a scheduled module and write it with its parameters into ``folder``.

    Parameters
    ----------
    module : tvm.IRModule
        ``lowered.module`` with its loops scheduled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if target.on_webassembly:
        library = folder / writing.CODE
        writing.write_network(module, list(lowered.parameters.values()), target, folder)
    else:
        library = folder / LIBRARY
        write_library(build_module(module, target, lowered.module), library, target)
        save_file(lowered.parameters, folder / PARAMETERS)
    layers: dict[str, list[str]] = defaultdict(list)
    for layer in lowered.operators:
        layers[layer["kernel"]].append(layer["name"])
    contents = {"parameters": list(lowered.parameters), "layers": layers}
    (folder / CONTENTS).write_text(json.dumps(contents, indent=1))
    return Build(
        lowered.operators,
        lowered.coverage,
        library_bytes=library.stat().st_size,
        packed_bytes=sum(array.nbytes for array in lowered.parameters.values()),
        edges=lowered.edges,
    )


def build_module(module: tvm.IRModule, target: Target, unscheduled: tvm.IRModule) -> relax.VMExecutable:
    """Return the executable of a scheduled module.

    If an operator's schedule does not compile, its code is taken from ``unscheduled``,
    the module before scheduling.  Failures of convolutions and linear layers are
    errors, and so are all failures on a GPU, where unscheduled code cannot run.
    """
    try:
        return _build(module, target)
    except Exception:
        if target.on_gpu:
            raise
        repaired = tvm.IRModule(dict(module.functions), attrs=module.attrs)
        for variable, function in module.functions_items():
            is_operator = isinstance(function, tirx.PrimFunc) and function.attrs.get("op_pattern") != OPAQUE
            if is_operator and not _compiles(function, target):
                repaired.update_func(variable, unscheduled[variable.name_hint])
        return _build(repaired, target)


def _build(module: tvm.IRModule, target: Target) -> relax.VMExecutable:
    """Run the passes after scheduling; legalising and fusing again would lose names and schedules."""
    on = tvm_target(target)
    with on:
        passes = [*pipeline.dataflow_lower_passes(on), *pipeline.finalize_passes(on)]
        lowered = tvm.transform.Sequential(passes)(module)
        return relax.build(lowered, on, relax_pipeline=None, tir_pipeline=pipeline_of(target))


def _compiles(function: tirx.PrimFunc, target: Target) -> bool:
    try:
        build_functions(tvm.IRModule({"main": function.with_attr("global_symbol", "main")}), target)
    except Exception:
        return False
    return True


class TvmProgram(Program):
    """A program that TVM built, loaded from its folder.

    Parameters
    ----------
    folder : Path
        What :func:`write_program` wrote.
    target : Target
    session : RPCSession, optional
        Of the board that it runs on; by default it runs in this process.

    Raises
    ------
    OSError, ValueError
        If a file is missing or damaged.
    """

    def __init__(self, folder: Path, target: Target, session: RPCSession | None = None) -> None:
        contents = json.loads((folder / CONTENTS).read_text())
        self._session = session
        self._kind = "cpu" if target.on_processors else target.kind
        if session is None:
            self._device = tvm.device(self._kind)
            self._library = tvm.runtime.load_module(str(folder / LIBRARY))
        else:
            self._device = session.device(self._kind)
            session.upload(str(folder / LIBRARY))
            self._library = session.load_module(LIBRARY)
        self._layers: dict[str, list[str]] = contents["layers"]
        arrays = load_file(folder / PARAMETERS)
        self._parameters = [self._on_device(arrays[name]) for name in contents["parameters"]]
        self._machine = relax.VirtualMachine(self._library, self._device)
        self._bound: list[tuple[Images, str, tvm.runtime.Tensor]] = []

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images`` and waits for its end."""
        run: Callable[[], Any] = self._machine[self._bind(images)]
        if self._kind == "cpu":
            return run

        def run_and_wait() -> Any:
            result = run()
            self._device.sync()
            return result

        return run_and_wait

    def timer(self, images: Images) -> Callable[[int], float] | None:
        """Return a function that tells the seconds of ``n`` inferences by the device's clock.

        None for this machine's processors, whose clock is the caller's.
        """
        if self._session is None and self._kind == "cpu":
            return None
        name = self._bind(images)

        def seconds(runs: int) -> float:
            evaluator = self._machine.time_evaluator(name, self._device, number=runs)
            return float(evaluator().mean) * runs

        return seconds

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        result = self._machine["main"](self._on_device(images), *self._parameters)
        return np.asarray(result.numpy())

    def layers(self, images: Images, repeats: int) -> list[Layer]:
        """Return the layers that the build names, in order, with median seconds over ``repeats``."""
        # A separate machine: an instrument slows every later run.
        machine = relax.VirtualMachine(self._library, self._device)
        given = self._on_device(images)
        machine.save_function("main", "timed", given, *self._parameters, include_return=False)
        session = self._session
        timing = time_kernels if session is None else session.get_function(TIME_KERNELS)
        kernels = json.loads(timing(machine.module, "timed", self._kind, repeats))
        names = layers_of([kernel for kernel, _ in kernels], self._layers)
        return [
            {"name": name, "latency_s": statistics.median(seconds)}
            for name, (_, seconds) in zip(names, kernels, strict=True)
        ]

    def _bind(self, images: Images) -> str:
        """Return the name under which the machine runs ``images``, which stay on the device."""
        for bound, name, _ in self._bound:
            if bound is images:
                return name
        name, given = f"bound{len(self._bound)}", self._on_device(images)
        here = self._session is None  # a board sends no outputs while it is timed
        self._machine.save_function("main", name, given, *self._parameters, include_return=here)
        self._bound.append((images, name, given))
        return name

    def _on_device(self, array: npt.NDArray[Any]) -> tvm.runtime.Tensor:
        return tvm.runtime.tensor(np.ascontiguousarray(array), self._device)
