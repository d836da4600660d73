"""TVM's form of a target."""

from __future__ import annotations

import tvm

from dlas.measuring.cuda_toolkit import point_tvm_to_compiler
from dlas.stack import Target


def tvm_target(target: Target) -> tvm.target.Target:
    """Return the target as TVM's own object."""
    if target.kind == "cuda":
        point_tvm_to_compiler()
    return tvm.target.Target(dict(target.description))
