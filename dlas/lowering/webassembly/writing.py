"""Write a network or a kernel as a WebAssembly module, its parameters and what a host has to know."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import tvm
from tvm import relax, tirx
from tvm.relax.backend.cpu_generic import pipeline

from dlas.lowering.target import tvm_target
from dlas.lowering.webassembly.functions import CALL, RUN, callers, finish, lower_kernels, with_pointers
from dlas.lowering.webassembly.linking import link
from dlas.lowering.webassembly.plan import CallPlan, plan_kernel, plan_network
from dlas.stack import Array, Target
from dlas.stack.engine import ModuleTensor, WasmModule, aligned

CODE, PARAMETERS, CONTENTS = "network.wasm", "parameters.bin", "network.json"
KERNEL = "kernel"
"""What a kernel that is written alone is called."""


def write_network(
    module: tvm.IRModule, parameters: Sequence[Array], target: Target, folder: Path
) -> WasmModule:
    """Write a scheduled network.

    Parameters
    ----------
    module : tvm.IRModule
        ``main(images, *parameters)`` and the kernels that it calls, scheduled.

    Raises
    ------
    MissingPackage
        If there is no linker.
    Unsupported
        If ``main`` does more than to call kernels.
    """
    on = tvm_target(target)
    with on:
        passes = [*pipeline.dataflow_lower_passes(on), relax.transform.StaticPlanBlockMemory()]
        module = tvm.transform.Sequential(passes)(module)
    plan = plan_network(module, parameters)
    kernels = {name: module[name] for name in dict.fromkeys(name for name, _ in plan.calls)}
    return _write(plan, kernels, on, folder)


def write_kernel(kernel: tirx.PrimFunc, target: Target, folder: Path) -> WasmModule:
    """Write a scheduled kernel; its last argument is its output."""
    return _write(plan_kernel(KERNEL, kernel), {KERNEL: kernel}, tvm_target(target), folder)


def read_module(folder: Path) -> WasmModule:
    """Return what a host has to know of the module in ``folder``.

    Raises
    ------
    OSError, ValueError, KeyError, TypeError
        If the file is missing or damaged.
    """
    return WasmModule.of(json.loads((folder / CONTENTS).read_text()))


def _write(
    plan: CallPlan, kernels: Mapping[str, tirx.PrimFunc], target: tvm.target.Target, folder: Path
) -> WasmModule:
    functions, workspace_bytes = {}, 0
    for name, kernel in lower_kernels(kernels, target).functions_items():
        function, taken = with_pointers(kernel, name.name_hint, target)
        functions[name.name_hint] = function
        workspace_bytes = max(workspace_bytes, taken)
    called = callers(plan, plan.reserve(workspace_bytes), target)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        # Two objects: where LLVM inlines kernels into their caller, it takes buffers of other names for other
        # memory, and they share it.
        objects = []
        for number, group in enumerate((functions, called)):
            objects.append(Path(scratch) / f"{number}.o")
            built = tvm.get_global_func("target.build.llvm")(finish(group, target), target)
            built.write_to_file(str(objects[-1]), "o")
        link(objects, (RUN, CALL), folder / CODE)
    parameters, offset = [], 0
    with (folder / PARAMETERS).open("wb") as out:
        for array in plan.parameters:
            parameters.append(ModuleTensor(offset, array.shape, str(array.dtype)))
            offset += out.write(array.tobytes() + bytes(aligned(array.nbytes) - array.nbytes))
    assert plan.output is not None
    calls = tuple(name for name, _ in plan.calls)
    module = WasmModule(
        plan.parameters_bytes, plan.memory_bytes, tuple(plan.inputs), plan.output, calls, tuple(parameters)
    )
    (folder / CONTENTS).write_text(json.dumps(module.content()))
    return module
