"""TVM's form of a target, and libraries for it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import tvm
from tvm.support import cc

from dlas.bench.measuring.cuda_toolkit import point_tvm_to_compiler
from dlas.stack import Target


def tvm_target(target: Target) -> tvm.target.Target:
    """Return the target as TVM's own object."""
    if target.kind == "cuda":
        point_tvm_to_compiler()
    return tvm.target.Target(dict(target.description))


class Executable(Protocol):
    """What TVM has built."""

    def export_library(self, file_name: str, **options: object) -> object:
        """Write a library."""
        ...


def write_library(built: Executable, path: Path, target: Target) -> None:
    """Write what TVM has built as a library that the target's C compiler links."""
    linking = {"fcompile": cc.cross_compiler(target.linker)} if target.linker else {}
    built.export_library(str(path), **linking)
