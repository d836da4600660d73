"""The contract of algorithms, checked through the same lowering that whole networks go through."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm_ffi import structural_equal

from dlas.axes.compilers.programs.tvm import build_module
from dlas.lowering.kernels.convolutions import ConvolutionKernel, algorithm_name
from dlas.lowering.kernels.kernel import schedule_kernel
from dlas.lowering.lower import LoweredNetwork, lower_graph, schedule
from dlas.stack import Algorithm, Array, Target
from dlas.sweep.study import parts
from dlas.testing.cases import CASES, Case, expected, graph, tensors
from dlas.testing.faults import describe_fault
from dlas.testing.guards import guard_kernels

Run = Callable[[Any, Sequence[Array], Target], Array]
"""Returns the output of ``main`` of a module scheduled for a target, for some arguments."""
HOST = Target({"kind": "llvm", "num-cores": 2}, threads=2)
"""A generic processor of this machine's architecture: correctness does not depend on the model."""
POINTS = 4
"""Points of a design space that a case is checked at by default: the first, the last and two between."""


def run_here(module: Any, arguments: Sequence[Array], target: Target = HOST) -> Array:
    """Return the output of ``main`` of a module on this machine's processors.

    Raises
    ------
    AssertionError
        If a second run gives different bits.

    Notes
    -----
    A kernel that reads in front of its arguments, or behind them, kills the process.
    """
    machine = relax.VirtualMachine(build_module(module, target, module), tvm.cpu())
    inputs = [tvm.runtime.tensor(argument) for argument in arguments]
    outputs = []
    for behind in (False, True):
        guard_kernels(machine, behind)
        outputs.append(np.asarray(machine["main"](*inputs).numpy()))
    first, second = outputs
    assert first.tobytes() == second.tobytes(), "two runs of one build give two results"
    return first


def every_choice() -> dict[str, Algorithm]:
    """Return every algorithm at its defaults, and with each other choice of an option that is one of a few.

    Returns
    -------
    dict of Algorithm
        By name; of those with another choice the option follows it, after a space.
    """
    found = {}
    for name in parts.names("algorithm"):
        found[name] = parts.make("algorithm", name, {})
        cls = parts.find("algorithm", name).cls
        hints = typing.get_type_hints(cls)
        for option in dataclasses.fields(cls):
            if typing.get_origin(hints[option.name]) is typing.Literal:
                others = [value for value in typing.get_args(hints[option.name]) if value != option.default]
                for value in others:
                    made = parts.make("algorithm", name, {option.name: value})
                    found[f"{name} {option.name}={value}"] = made
    return found


def check_algorithm(
    algorithm: Algorithm,
    target: Target = HOST,
    cases: Iterable[Case] = CASES,
    run: Run = run_here,
    points: int = POINTS,
) -> dict[str, str]:
    """Check the contract of an algorithm.

    For every convolution that it does not decline

    - it agrees with PyTorch within its ``tolerance``, with the minimal schedule and
      at some points of its design space;
    - bias, residual and activation are fused into its kernel;
    - packing is repeatable, leaves the weight as it is, and ``unpack`` undoes it;
    - two builds are one program, and two runs give the same bits.

    Parameters
    ----------
    target : Target
        Target of the schedules.
    run : callable
        How a module scheduled for ``target`` is run.
    points : int
        Points of the design space to check at most: the first, the last and some between.

    Returns
    -------
    dict of str
        The reason of every case that was declined, by the case's name.

    Raises
    ------
    AssertionError
        After all convolutions; names every one that is not right.
    """
    declined, wrong = {}, []
    for case in cases:
        try:
            reason = check_case(algorithm, case, target, run, points=points)
        except AssertionError as error:
            wrong.append(str(error))
            continue
        if reason is not None:
            declined[case.conv.name] = reason
    if wrong:
        raise AssertionError("\n".join(wrong))
    return declined


def check_case(
    algorithm: Algorithm,
    case: Case,
    target: Target = HOST,
    run: Run = run_here,
    seed: int = 0,
    points: int = POINTS,
) -> str | None:
    """Check one convolution; return the reason if it is declined."""
    try:
        return _check_case(algorithm, case, target, run, seed, points)
    except Exception as error:  # any error of the part or of TVM is a finding
        fault = describe_fault(error, algorithm)
        raise AssertionError(f"{algorithm_name(algorithm)} on {case.conv.name!r}: {fault}") from error


def _check_case(
    algorithm: Algorithm, case: Case, target: Target, run: Run, seed: int, points: int
) -> str | None:
    arrays, lowered = tensors(case, seed), lower_case(algorithm, case, seed, target)
    (kernel,) = lowered.kernels.values()
    assert isinstance(kernel, ConvolutionKernel)
    if (reason := kernel.declined) is not None:
        assert isinstance(reason, str) and reason.strip(), "declined without a reason"
        return reason
    _check_packing(kernel, arrays["weight"])
    _check_tail(kernel, case)
    scheduled = schedule(lowered, target)
    _check_same_program(lowered, scheduled, lower_case(algorithm, case, seed, target), target)
    right, tolerance = expected(case, arrays), kernel.algorithm.tolerance
    arguments = [arrays["x"], *lowered.parameters.values()]
    try:
        _check_close(run(scheduled, arguments, target), right, tolerance, "schedule")
    except AssertionError:
        # Report an error before scheduling first.
        _check_close(run_here(lowered.module, arguments), right, tolerance, "compute")
        raise
    for point, module in _points(lowered, kernel, target, points):
        _check_close(run(module, arguments, target), right, tolerance, point)
    return None


def lower_case(algorithm: Algorithm, case: Case, seed: int = 0, target: Target = HOST) -> LoweredNetwork:
    """Return a case as a network, computed by ``algorithm``."""
    return lower_graph(graph(case, tensors(case, seed)), algorithm, target)


def _check_packing(kernel: ConvolutionKernel, weight: Array) -> None:
    algorithm, conv, before = kernel.algorithm, kernel.conv, weight.copy()
    first, second = algorithm.pack(weight, conv), algorithm.pack(weight, conv)
    assert np.array_equal(weight, before), "pack changes the weight it is given"
    same = len(first) == len(second) and all(map(np.array_equal, first, second))
    assert same, "pack gives two results for one weight"
    try:
        unpacked = algorithm.unpack(first, conv)
    except NotImplementedError as error:
        raise AssertionError(str(error)) from None
    _check_close(unpacked, weight, algorithm.tolerance, "unpack")


def _check_tail(kernel: ConvolutionKernel, case: Case) -> None:
    operators = [step.operator for step in kernel.steps]
    fused = case.bias + case.residual + (case.activation is not None)
    assert len(operators) == fused, f"the tail is not in the kernel, which has {operators or 'none of it'}"


def _check_same_program(
    lowered: LoweredNetwork, scheduled: Any, again: LoweredNetwork, target: Target
) -> None:
    """Compare two scheduled modules; equal modules compile to equal code."""
    same = all(map(np.array_equal, lowered.parameters.values(), again.parameters.values()))
    assert same and structural_equal(scheduled, schedule(again, target)), "two builds are two programs"


def _points(
    lowered: LoweredNetwork, kernel: ConvolutionKernel, target: Target, most: int
) -> Iterator[tuple[str, Any]]:
    """Yield points spread over the design space, described in words, with their scheduled modules."""
    space = kernel.algorithm.space(kernel.conv, target)
    for at in sorted({round(at) for at in np.linspace(0, len(space) - 1, most)} if space else ()):
        module = schedule(lowered, target)
        tuned = schedule_kernel(kernel, target, space[at])
        module.update_func(module.get_global_var(kernel.name), tuned)
        yield f"point {at + 1} of {len(space)} of its space, {dict(space[at])}", module


def _check_close(actual: Array, expected: Array, tolerance: float, what: str) -> None:
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    gap, largest = float(np.abs(actual - expected).max()), float(np.abs(expected).max())
    relative = gap / largest if largest else gap
    assert relative <= tolerance, f"{what}: relative error {relative:.2g} is above {tolerance:g}"
