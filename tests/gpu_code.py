"""What TVM makes of a scheduled module for a GPU: the host's launches, the kernels' source, machine code."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm.support import nvcc
from tvm.tirx.build import codegen_build, split_host_device_mods

from dlas.lowering.target import tvm_target
from dlas.stack import Target


def split(module: Any, target: Target) -> tuple[Any, Any]:
    """Return the host's functions, and the kernels that they launch, of a scheduled module.

    ``tvm.tirx.build`` starts alike, and then needs the device's runtime.

    Raises
    ------
    AssertionError
        If the host writes to memory itself, which may be the device's.
    """
    on = tvm_target(target)
    functions = {
        variable: function.with_attr("global_symbol", variable.name_hint)
        for variable, function in module.functions_items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }
    lower, _, finalize = tvm.tirx.get_default_tir_pipeline(on)
    lowered = lower(tvm.tirx.transform.BindTarget(on.with_host(on.host))(tvm.IRModule(functions)))
    host, devices = split_host_device_mods(lowered)
    written: list[Any] = []
    for function in host.functions.values():
        tvm_ffi.structural_walk(function.body, (tvm.tirx.BufferStore, written.append))
    assert not written, f"this is left to the host: {written[0]}"
    (kernels,) = devices.values()
    return host, finalize()(kernels)


def source(kernels: Any, target: Target) -> str:
    """Return what the device's compiler is given."""
    return str(codegen_build(kernels, tvm_target(target)).inspect_source())


def names(kernels: Any) -> list[str]:
    """Return the kernels' names."""
    return sorted(variable.name_hint for variable in kernels.get_global_vars())


def compile_cuda(text: str, target: Target) -> bytes:
    """Return the machine code of CUDA source."""
    with tvm_target(target):
        return bytes(nvcc.tvm_callback_cuda_compile(text))


def check_compiles(module: Any, target: Target) -> None:
    """Compile a module scheduled for CUDA and find every kernel in the machine code."""
    _, kernels = split(module, target)
    binary = compile_cuda(source(kernels, target), target)
    assert binary.startswith(b"\x7fELF")
    assert names(kernels)
    assert [name for name in names(kernels) if f".text.{name}\0".encode() not in binary] == []
