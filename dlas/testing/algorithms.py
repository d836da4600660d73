"""Contract checks for parts: for ours, and for those that others write.

A check raises ``AssertionError`` with what was asked, what came and where.  It
builds kernels through the same lowering that whole networks go through.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import tvm
from torch.nn import functional
from tvm import relax
from tvm_ffi import structural_equal

from dlas.compilers.programs.tvm import build_module
from dlas.lowering.kernels import Kernel, algorithm_name, schedule_kernel
from dlas.lowering.lower import Lowered, lower_graph, schedule
from dlas.lowering.simplify import Graph
from dlas.stack import Algorithm, Array, Conv, Target

Run = Callable[[Any, Sequence[Array], Target], Array]
"""Returns what ``main`` of a module scheduled for a target computes of its arguments."""
HOST = Target({"kind": "llvm", "num-cores": 2}, threads=2)
"""Any processor of this machine's kind: right or wrong does not depend on its speed."""
POINTS = 4
"""Points of a design space that a case is checked at by default: the first, the last and two between."""
ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "relu": (relax.op.nn.relu, functional.relu),
    "relu6": (lambda x: relax.op.clip(x, 0.0, 6.0), functional.relu6),
    "sigmoid": (relax.op.sigmoid, torch.sigmoid),
    "silu": (relax.op.nn.silu, functional.silu),
}
"""An activation as Relax and as torch write it."""


@dataclass(frozen=True)
class Case:
    """One convolution that an algorithm must compute or decline.

    Parameters
    ----------
    conv : Conv
        ``conv.name`` says what is special about it.
    bias, residual : bool
        What is added in the same kernel.
    activation : str, optional
        A key of ``ACTIVATIONS``, applied last, in the same kernel.
    sparsity : float
        Share of zeros in the weight.  Between 0 and 1, one filter is all zeros, and another
        has none if there are several.
    """

    conv: Conv
    bias: bool = False
    residual: bool = False
    activation: str | None = None
    sparsity: float = 0.0


def _conv(
    name: str, n: int, c: int, size: tuple[int, int], k: int, kernel: tuple[int, int], **rest: Any
) -> Conv:
    return Conv(name, n, c, *size, k, *kernel, **rest)


SAME = (1, 1, 1, 1)
CASES: tuple[Case, ...] = (
    Case(_conv("plain", 1, 8, (10, 12), 16, (3, 3))),
    Case(_conv("padded", 1, 16, (14, 14), 16, (3, 3), padding=SAME)),
    Case(_conv("stride 2", 1, 8, (15, 16), 16, (3, 3), strides=(2, 2), padding=SAME)),
    Case(_conv("strides 1 and 3", 1, 4, (9, 13), 8, (3, 3), strides=(1, 3), padding=SAME)),
    Case(_conv("asymmetric padding", 1, 4, (9, 9), 8, (3, 3), padding=(0, 1, 2, 3))),
    Case(_conv("a border of 1.5", 1, 16, (9, 9), 16, (3, 3), padding=SAME, padding_value=1.5), True, True),
    Case(_conv("dilation", 1, 8, (13, 13), 8, (3, 3), padding=(2, 2, 2, 2), dilation=(2, 2))),
    Case(_conv("dilations 1 and 3", 1, 4, (9, 15), 8, (3, 3), dilation=(1, 3))),
    Case(_conv("groups", 1, 12, (8, 8), 24, (3, 3), padding=SAME, groups=3)),
    Case(_conv("depthwise", 1, 16, (12, 12), 16, (3, 3), padding=SAME, groups=16)),
    Case(_conv("depthwise, two filters a channel", 1, 6, (8, 8), 12, (3, 3), padding=SAME, groups=6)),
    Case(_conv("depthwise, eight filters a channel", 1, 3, (8, 8), 24, (3, 3), padding=SAME, groups=3)),
    Case(
        _conv(
            "depthwise, stride 2",
            1,
            16,
            (13, 13),
            16,
            (5, 5),
            strides=(2, 2),
            padding=(2, 2, 2, 2),
            groups=16,
        )
    ),
    Case(_conv("1x1", 1, 32, (7, 7), 16, (1, 1))),
    Case(_conv("1x1, stride 2", 1, 16, (8, 8), 32, (1, 1), strides=(2, 2))),
    Case(
        _conv(
            "7x7, stride 2, three channels", 1, 3, (32, 32), 16, (7, 7), strides=(2, 2), padding=(3, 3, 3, 3)
        )
    ),
    Case(_conv("1x5 kernel", 1, 4, (6, 11), 8, (1, 5), padding=(0, 2, 0, 2))),
    Case(_conv("odd sizes", 1, 5, (11, 7), 13, (3, 3), padding=SAME)),
    Case(_conv("filters that make no whole vectors", 1, 9, (8, 16), 51, (1, 1)), bias=True),
    Case(_conv("one output point", 1, 16, (3, 3), 10, (3, 3))),
    Case(_conv("one of everything", 1, 1, (1, 1), 1, (1, 1)), bias=True, activation="relu"),
    Case(_conv("depthwise 1x1", 1, 8, (5, 5), 8, (1, 1), groups=8), bias=True),
    Case(_conv("one channel, one filter", 1, 1, (5, 5), 1, (3, 3), padding=SAME)),
    Case(_conv("whole blocks of GPU threads", 1, 8, (10, 16), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("batch 3", 3, 8, (9, 9), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("bias", 1, 8, (8, 8), 16, (3, 3), padding=SAME), bias=True),
    Case(_conv("bias and relu", 1, 8, (8, 8), 16, (3, 3), padding=SAME), bias=True, activation="relu"),
    Case(_conv("silu", 1, 8, (8, 8), 16, (1, 1)), bias=True, activation="silu"),
    Case(_conv("depthwise and relu6", 2, 8, (9, 9), 8, (3, 3), padding=SAME, groups=8), True, False, "relu6"),
    Case(_conv("bias, residual, relu", 1, 16, (7, 7), 16, (3, 3), padding=SAME), True, True, "relu"),
    Case(_conv("residual, batch 2", 2, 8, (6, 6), 8, (1, 1)), True, True, "sigmoid"),
    Case(_conv("half zeros", 1, 8, (9, 7), 10, (3, 3), strides=(1, 2), padding=SAME), True, sparsity=0.5),
    Case(_conv("mostly zeros", 1, 16, (8, 8), 16, (3, 3), padding=SAME), True, True, "relu", sparsity=0.9),
    Case(_conv("hardly anything but zeros", 2, 24, (6, 6), 8, (1, 1), groups=2), True, sparsity=0.99),
    Case(_conv("nothing but zeros", 1, 4, (6, 6), 8, (3, 3), padding=SAME), True, sparsity=1.0),
)
"""What every algorithm is held to."""


def run_here(module: Any, arguments: Sequence[Array], target: Target = HOST) -> Array:
    """Return what ``main`` of a module computes on this machine's processors.

    Raises
    ------
    AssertionError
        If a second run gives other bits.
    """
    machine = relax.VirtualMachine(build_module(module, target, module), tvm.cpu())
    tensors = [tvm.runtime.tensor(argument) for argument in arguments]
    first, second = (np.asarray(machine["main"](*tensors).numpy()) for _ in range(2))
    assert first.tobytes() == second.tobytes(), "two runs of one build give two results"
    return first


def check_algorithm(
    algorithm: Algorithm,
    target: Target = HOST,
    cases: Iterable[Case] = CASES,
    run: Run = run_here,
    points: int = POINTS,
) -> dict[str, str]:
    """Hold an algorithm to its contract.

    On every convolution that it does not decline

    - it is right against PyTorch, within its own ``tolerance``: as ``schedule``
      leaves it and at some points of its design space;
    - bias, residual and activation are in its kernel;
    - packing is repeatable, leaves the weight as it is, and ``unpack`` undoes it;
    - two builds are one program, and two runs give the same bits.

    Parameters
    ----------
    algorithm : Algorithm
    target : Target
        What the schedule is for.
    cases : iterable of Case
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
    """
    declined = {}
    for case in cases:
        reason = check_case(algorithm, case, target, run, points=points)
        if reason is not None:
            declined[case.conv.name] = reason
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
    except Exception as error:  # whatever the part or TVM raises, it is one finding
        told = str(error) if isinstance(error, AssertionError) else _raised(error, algorithm)
        raise AssertionError(f"{algorithm_name(algorithm)} on {case.conv.name!r}: {told}") from error


def _raised(error: Exception, algorithm: Algorithm) -> str:
    """Return an exception in a line, with the line of the algorithm's own file that it came through."""
    own = inspect.getfile(type(algorithm))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own]
    place = f" ({own}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    # TVM's schedule prints the whole program, then says what is wrong.
    text = str(error).rpartition("Error message:")[2].strip()
    told = text.partition("\n")[0]
    return f"{type(error).__name__}: {told}{place}"


def _check_case(
    algorithm: Algorithm, case: Case, target: Target, run: Run, seed: int, points: int
) -> str | None:
    tensors, lowered = _tensors(case, seed), lower_case(algorithm, case, seed)
    (kernel,) = lowered.kernels.values()
    if (reason := kernel.declined) is not None:
        assert isinstance(reason, str) and reason.strip(), "declined without a reason"
        return reason
    _check_packing(kernel, tensors["weight"])
    _check_tail(kernel, case)
    scheduled = schedule(lowered, target)
    _check_same_program(lowered, scheduled, lower_case(algorithm, case, seed), target)
    expected, tolerance = _expected(case, tensors), kernel.algorithm.tolerance
    arguments = [tensors["x"], *lowered.parameters.values()]
    try:
        _check_close(run(scheduled, arguments, target), expected, tolerance, "schedule")
    except AssertionError:
        # If the program is wrong before it is scheduled, that is the finding.
        _check_close(run_here(lowered.module, arguments), expected, tolerance, "compute")
        raise
    for point, module in _points(lowered, kernel, target, points):
        _check_close(run(module, arguments, target), expected, tolerance, point)
    return None


def lower_case(algorithm: Algorithm, case: Case, seed: int = 0) -> Lowered:
    """Return a case as a network of its own, computed by ``algorithm``."""
    return lower_graph(_graph(case, _tensors(case, seed)), algorithm)


def _tensors(case: Case, seed: int) -> dict[str, Array]:
    """Return random input, weight, bias and residual of a case."""
    conv, draw = case.conv, np.random.default_rng(seed)
    shapes = {
        "x": (conv.n, conv.c, conv.h, conv.w),
        "weight": (conv.k, conv.c // conv.groups, conv.r, conv.s),
        "bias": (conv.k,),
        "residual": (conv.n, conv.k, conv.p, conv.q),
    }
    tensors = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    if case.sparsity:
        zeros = draw.random(shapes["weight"]) < case.sparsity
        zeros[0] = case.sparsity == 1
        zeros[conv.k // 2] = True
        tensors["weight"][zeros] = 0
    return tensors


def _check_packing(kernel: Kernel, weight: Array) -> None:
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


def _check_tail(kernel: Kernel, case: Case) -> None:
    found = [step.operator for step in kernel.steps]
    wanted = case.bias + case.residual + (case.activation is not None)
    assert len(found) == wanted, f"the tail is not in the kernel, which has {found or 'none of it'}"


def _check_same_program(lowered: Lowered, scheduled: Any, again: Lowered, target: Target) -> None:
    """Compare what is compiled; the code that a compiler makes of it is the same if it is."""
    same = all(map(np.array_equal, lowered.parameters.values(), again.parameters.values()))
    assert same and structural_equal(scheduled, schedule(again, target)), "two builds are two programs"


def _points(lowered: Lowered, kernel: Kernel, target: Target, most: int) -> Iterator[tuple[str, Any]]:
    """Yield points from all over the design space, in words, and the module that each one gives."""
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


def _expected(case: Case, tensors: dict[str, Array]) -> Array:
    """Return what PyTorch computes in float64."""
    conv = case.conv
    given = {name: torch.from_numpy(array).double() for name, array in tensors.items()}
    top, left, bottom, right = conv.padding
    x = functional.pad(given["x"], (left, right, top, bottom), value=conv.padding_value)
    y = functional.conv2d(x, given["weight"], None, conv.strides, 0, conv.dilation, conv.groups)
    if case.bias:
        y = y + given["bias"][:, None, None]
    if case.residual:
        y = y + given["residual"]
    if case.activation:
        y = ACTIVATIONS[case.activation][1](y)
    return y.numpy()


def _graph(case: Case, tensors: dict[str, Array]) -> Graph:
    """Return the case as a network of its own."""
    conv = case.conv
    images = relax.Var("images", relax.TensorType(tensors["x"].shape, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [images]):
        x, padding = images, conv.padding
        if conv.padding_value:  # a convolution of Relax pads with zeros
            (top, left, bottom, right), padding = conv.padding, (0, 0, 0, 0)
            widths = [0, 0, 0, 0, top, bottom, left, right]
            x = builder.emit(relax.op.nn.pad(images, widths, pad_value=conv.padding_value))
        y = convolved = builder.emit(
            relax.op.nn.conv2d(
                x,
                relax.const(tensors["weight"]),
                strides=conv.strides,
                padding=padding,
                dilation=conv.dilation,
                groups=conv.groups,
                out_dtype=conv.accumulator_type,
            )
        )
        if case.bias:
            y = builder.emit(relax.op.add(y, relax.const(tensors["bias"].reshape(-1, 1, 1))))
        if case.residual:
            y = builder.emit(relax.op.add(y, relax.const(tensors["residual"])))
        if case.activation:
            y = builder.emit(ACTIVATIONS[case.activation][0](y))
        builder.emit_func_output(y)
    blocks = builder.get()["main"].body.blocks
    bindings = [(binding.var, binding.value) for block in blocks for binding in block.bindings]
    return Graph(images, bindings, y, {convolved: conv.name})
