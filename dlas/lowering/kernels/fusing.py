"""Legalise and fuse all operators that have no kernel yet, and keep what each kernel is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm
from tvm import relax, s_tir, tirx

from dlas.lowering.graph import scalars
from dlas.lowering.graph.graph import OPAQUE, RESHAPES, bindings_of, called_kernel
from dlas.lowering.kernels.attention import legalisation
from dlas.lowering.operators import pooling
from dlas.lowering.operators.inline import inline_elementwise
from dlas.stack import Target

WRITTEN = {**pooling.WRITTEN, **scalars.WRITTEN}
"""Legalisation functions of operators that TVM's own would be slow for."""


@dataclass(frozen=True)
class FusedOperator:
    """One of the operators that a kernel computes."""

    variable: relax.Var
    """Holds its result in the network before fusing, the first one where several calls share the kernel."""
    value: relax.Expr
    """The call of the operator, or of the PrimFunc that it was lowered to before."""
    pattern: int
    """TVM's pattern of the operator: the higher, the more work an element takes."""


@dataclass(frozen=True)
class FusedModule:
    """A network whose operators are kernels."""

    module: tvm.IRModule
    """``main`` and the PrimFuncs that it calls."""
    parts: Mapping[str, tuple[FusedOperator, ...]]
    """What each PrimFunc computes, in order."""


def fuse_operators(module: tvm.IRModule, target: Target) -> FusedModule:
    """Return a network with all but its kernels legalised and fused by TVM.

    Parameters
    ----------
    module : tvm.IRModule
        ``main`` calls operators and PrimFuncs; those with TVM's pattern ``kOpaque`` stay as they are.
    """
    module["main"] = module["main"].with_attr("num_input", 1)
    # Every operator as loops: those here where TVM's own would be slow.
    legalised = relax.transform.LegalizeOps({**WRITTEN, **legalisation(target)})(module)
    # What may be fused follows from how each kernel reads its inputs.
    legalised = relax.transform.AnnotateTIROpPattern()(legalised)
    # Operators that become one kernel are a function; what is in it can only be told now.
    grouped = relax.transform.FuseOps()(legalised)
    parts = _groups(grouped, _parts(module, legalised))
    # Each such function as the loops of all its operators.
    fused = relax.transform.FuseTIR()(grouped)
    # TVM takes a kernel for a view only if it is one reshape.
    fused = _with_single_reshapes(fused, parts)
    # Reshapes as views, which take no time.
    fused = relax.transform.RewriteDataflowReshape()(fused)
    # What was fused is not called any more.
    fused = relax.transform.DeadCodeElimination()(fused)
    return FusedModule(fused, parts)


def _parts(module: tvm.IRModule, legalised: tvm.IRModule) -> dict[str, FusedOperator]:
    """Return the operator that each PrimFunc of a legalised network computes.

    An operator that takes several PrimFuncs is the one of each.
    """
    values = dict(bindings_of(module["main"]))
    parts: dict[str, FusedOperator] = {}
    variable = None
    # The last PrimFunc of an operator writes its variable, so that the others are seen after it from the end.
    for written, value in reversed(bindings_of(legalised["main"])):
        variable = written if written in values else variable
        kernel = called_kernel(value)
        if kernel is not None and variable is not None:
            parts[kernel] = FusedOperator(variable, values[variable], _pattern(legalised[kernel]))
    return parts


def _groups(
    grouped: tvm.IRModule, parts: Mapping[str, FusedOperator]
) -> dict[str, tuple[FusedOperator, ...]]:
    """Return the parts of each kernel of a network whose operators ``FuseOps`` has grouped."""
    groups: dict[str, tuple[FusedOperator, ...]] = {kernel: (part,) for kernel, part in parts.items()}
    for variable, function in grouped.functions_items():
        if isinstance(function, relax.Function) and variable.name_hint != "main":
            calls = [called_kernel(value) for _, value in bindings_of(function)]
            groups[variable.name_hint] = tuple(
                parts[call] for call in calls if call is not None and call in parts
            )
    return groups


def _with_single_reshapes(
    module: tvm.IRModule, parts: Mapping[str, tuple[FusedOperator, ...]]
) -> tvm.IRModule:
    """Return a network in which several reshapes in a row are one, which TVM makes a view."""
    changed = tvm.IRModule(dict(module.functions), attrs=module.attrs)
    for variable, function in module.functions_items():
        operators = [part.value.op.name for part in parts.get(variable.name_hint, ())]
        if len(operators) > 1 and RESHAPES.issuperset(operators):
            schedule = s_tir.Schedule(function)
            inline_elementwise(schedule)
            changed.update_func(variable, schedule.mod["main"])
    return changed


def _pattern(function: tirx.PrimFunc) -> int:
    return int(function.attrs.get("op_pattern", OPAQUE))
