"""What each kind of compiler contributes to a deployed folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from dlas.axes.compilers.onnxruntime import OnnxRuntime
from dlas.axes.compilers.openvino import OpenVino
from dlas.axes.compilers.programs.openvino import read_properties
from dlas.axes.compilers.programs.torch import TorchRuntime, module_of
from dlas.axes.compilers.programs.tvm import TvmCompiler
from dlas.axes.compilers.torch_compile import TorchCompile
from dlas.deployment.runtimes import onnxruntime as onnxruntime_files
from dlas.deployment.runtimes import openvino as openvino_files
from dlas.deployment.runtimes import torch as torch_files
from dlas.deployment.runtimes import tvm as tvm_files
from dlas.errors import InputError
from dlas.stack import Backend, Network


@dataclass(frozen=True)
class ProgramFolder:
    """A program in a folder."""

    runtime: str
    """The module of :mod:`dlas.deployment.runtimes` that runs it."""
    packages: tuple[str, ...]
    """The distributions that the module needs."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of its ``Program``."""
    native: bool = False
    """Whether the program holds instructions of one processor."""
    tolerance: float = 0.0
    """Of its build."""
    notes: tuple[str, ...] = ()
    """In what its build may differ from the one that was measured."""


TVM = ProgramFolder("tvm", ("apache-tvm", "apache-tvm-ffi", "numpy"), native=True)
"""A program that TVM built."""


def check_packable(name: str, compiler: Backend) -> None:
    """Refuse a compiler whose programs cannot be taken elsewhere.

    Raises
    ------
    InputError
    """
    if not isinstance(compiler, TvmCompiler | OnnxRuntime | OpenVino | TorchRuntime):
        raise InputError(
            f"the compiler {name} cannot be deployed: only those that build with TVM, and onnxruntime, "
            "openvino, torch_eager and torch_compile can"
        )


def pack(
    compiler: Backend, network: Callable[[], Network], batch: int, build: Path, folder: Path
) -> ProgramFolder:
    """Write a program and ``program.py``, which loads it, into ``folder``.

    Parameters
    ----------
    network : callable
        Restores the network, for a runtime that runs the module itself.
    build : Path
        What the compiler built.
    """
    if isinstance(compiler, TvmCompiler):
        _copy(tvm_files.FILES, build, folder)
        packed = TVM
    elif isinstance(compiler, OnnxRuntime):
        _copy(onnxruntime_files.FILES, build, folder)
        packed = ProgramFolder("onnxruntime", ("onnxruntime", "numpy"), {"saturating": compiler.saturating})
    elif isinstance(compiler, OpenVino):
        _copy(openvino_files.FILES, build, folder)
        packed = ProgramFolder("openvino", ("openvino", "numpy"), {"properties": read_properties(build)})
    else:
        assert isinstance(compiler, TorchRuntime)
        _export(network(), batch, folder / torch_files.FILES[0])
        options = {
            "channels_last": compiler.channels_last,
            "compile": isinstance(compiler, TorchCompile),
            "inductor": compiler.options() if isinstance(compiler, TorchCompile) else None,
        }
        packed = ProgramFolder("torch", ("torch", "numpy"), options)
    copy_runtime(packed, folder)
    return packed


def copy_runtime(packed: ProgramFolder, folder: Path) -> None:
    """Write ``program.py``, which loads a program in its runtime."""
    source = Path(__file__).with_name("runtimes") / f"{packed.runtime}.py"
    shutil.copyfile(source, folder / "program.py")


def _copy(names: tuple[str, ...], build: Path, folder: Path) -> None:
    for name in names:
        shutil.copyfile(build / name, folder / name)


def _export(network: Network, batch: int, path: Path) -> None:
    """Write a torch module as an exported program for inputs [batch, c, h, w].

    Raises
    ------
    InputError
        If torch cannot export it.
    """
    images = torch.zeros(batch, *network.facts.shape)
    try:
        program = torch.export.export(module_of(network).eval(), (images,))
    except Exception as error:  # exporters raise errors of many kinds
        raise InputError(f"torch.export cannot export this network: {error}") from error
    program.example_inputs = None  # they alone would be pickled
    torch.export.save(program, path)
