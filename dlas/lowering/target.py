"""TVM's form of a target."""

from __future__ import annotations

import tvm

from dlas.stack import Target


def tvm_target(target: Target) -> tvm.target.Target:
    """Return the target as TVM's own object."""
    return tvm.target.Target(dict(target.description))
