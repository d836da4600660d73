"""Targets that TVM refuses, or silently takes for another."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from dlas.errors import one_line

ARCHITECTURE = re.compile(
    r"(x86_64|i[3-6]86|aarch64|arm64|arm(v\d\w*)?|thumb\w*|riscv(32|64)|loongarch64)-.+"
)
"""LLVM's names of architectures that boards have; TVM crashes where LLVM does not know one."""


def refusal(description: Mapping[str, Any]) -> str | None:
    """Return why TVM does not compile for a target as it is described, or None.

    Parameters
    ----------
    description : mapping
        A TVM target, as ``tvm.target.Target`` takes it.
    """
    import tvm

    for part in (description, description.get("host", {})):
        triple = part.get("mtriple")
        if triple is not None and not ARCHITECTURE.fullmatch(str(triple)):
            return f"mtriple = {triple!r} names no architecture of a board, as aarch64-linux-gnu does"
    try:
        target = tvm.target.Target(dict(description))
    except Exception as error:  # whatever TVM raises
        said, _, _ = str(error).partition("\n")
        return f"TVM refuses it: {one_line(said)}"
    return next((why for each in (target, target.host) if each and (why := _unknown_processor(each))), None)


def _unknown_processor(target: Any) -> str | None:
    """Return that LLVM does not know a target's processor: TVM would compile for any of its architecture."""
    from tvm.target import codegen

    mcpu = target.attrs.get("mcpu")
    if target.kind.name != "llvm" or not mcpu:
        return None
    # Without the processor itself, of which LLVM would print that it does not know it.
    plain = {name: target.attrs[name] for name in ("mtriple",) if name in target.attrs}
    known = sorted(
        str(name) for name in codegen.llvm_get_cpu_archlist(type(target)({"kind": "llvm", **plain}))
    )
    if mcpu in known:
        return None
    nearest = difflib.get_close_matches(str(mcpu), known, n=3, cutoff=0.4)
    hint = f"; similar names: {', '.join(nearest)}" if nearest else ""
    return f"LLVM knows no processor mcpu = {str(mcpu)!r} of that architecture{hint}"
