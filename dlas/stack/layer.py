"""Operators of networks, and the layers that builds and programs report, as rows hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, TypedDict, cast

from dlas.stack.convolution import Conv


class Types(TypedDict, total=False):
    """Types of a convolution's values, such as ``float32``."""

    input: str
    """Of the input."""
    weight: str
    """Of the weight."""
    accumulator: str
    """Of the sums."""
    first_sums: str
    """Of sums of a few products, which are added in ``accumulator`` then; left out where there are none."""
    output: str
    """Of the output."""


class Computation(TypedDict, total=False):
    """What an operator computes, and on what.

    Sizes that it lacks are left out.  Convolutions and pooling have all of ``n`` to ``dilation``
    but pooling ``k``; linear layers have ``n`` rows of ``c`` inputs and ``k`` outputs.
    """

    operator: str | None
    """What it computes: the name in ONNX's operator set where it has one there, such as ``Conv``, ``Gemm`` or
    ``Add``, else the runtime's own; ``LayoutChange`` where TVM copies a tensor into another layout. Of
    several in a kernel the one with the most work. Null where it is not known.
    """
    fused: Sequence[str]
    """The other operators computed in the same kernel, in order, named likewise. Scales of a batch norm that
    are part of the weights, the ``bias`` and reshapes are none.
    """
    inputs: Sequence[Sequence[int]]
    """Shapes of the tensors that it reads, without weights and other stored ones."""
    output: Sequence[int]
    """Shape of the tensor that it writes."""
    n: int
    """Batch."""
    c: int
    """Input channels."""
    h: int
    """Input height."""
    w: int
    """Input width."""
    k: int
    """Filters."""
    r: int
    """Kernel height."""
    s: int
    """Kernel width."""
    p: int
    """Output height."""
    q: int
    """Output width."""
    strides: Sequence[int]
    """Along height and width."""
    padding: Sequence[int]
    """Top, left, bottom, right."""
    dilation: Sequence[int]
    """Along height and width."""
    groups: int
    """Groups of channels."""
    bias: bool
    """Whether a convolution or a linear layer adds a bias."""
    ceil_mode: bool
    """Whether pooling rounds its output's size up."""
    axis: int
    """Axis that a concatenation joins its inputs along."""
    padding_value: float
    """Value of the padding: zero, or the zero point of a quantised input."""
    input_layout: str
    """``NCHW``, or in blocks of channels, ``NCHW16c``."""
    output_layout: str
    """``NCHW``, or in blocks of channels, ``NCHW16c``."""
    types: Types
    """Types of its values."""
    macs: int
    """Multiply-adds of the dense convolution, the whole batch."""
    nonzeros: int
    """Weights that are not zero."""


class Operator(Computation):
    """An operator of a network, or several in one kernel: what is computed."""

    name: str
    """The layer's name in the network; of other operators the kernel's."""


class TensorView(TypedDict):
    """A view of a tensor, such as a reshape, which computes nothing."""

    operator: str
    """Its name in torch or ONNX."""
    output: Sequence[int]
    """Its shape."""


class NetworkOperator(Operator):
    """An operator that knows who wrote what it reads, as a network's operators do."""

    reads: Sequence[int | None]
    """For each of the ``inputs`` the place of the operator that wrote it; null for the images, and what is
    computed from sizes alone.
    """
    views: Sequence[Sequence[TensorView]]
    """The views that were taken of each input since it was written."""


class ScheduleChoice(TypedDict, total=False):
    """The schedule that was chosen for a kernel, and the search that found it."""

    decisions: dict[str, Any] | str | None
    """Decisions of the schedule: a point of the algorithm's own space, or a shortened trace. Null where the
    algorithm follows fixed rules.
    """
    space: str
    """Space that was searched."""
    trials: int
    """Programs tried for this kernel."""
    valid_trials: int
    """Trials that compiled and computed the right result."""
    trial: int
    """Number of the trial that was chosen."""
    tuned_s: float
    """Time of a call of the chosen program, measured on its own during tuning."""


class Layer(Operator, ScheduleChoice, total=False):
    """An operator of the network: a convolution of the build, or another that the program runs.

    What it computes, what was chosen for it, and its times.  Sizes that an operator lacks are left out.
    Convolutions and pooling have all of ``n`` to ``dilation`` but pooling ``k``; linear layers have ``n``
    rows of ``c`` inputs and ``k`` outputs.
    """

    latency_s: float | None
    """Median of the profiled runs, seconds (``openvino``: mean); the profiler's cost is in it, and
    :mod:`dlas.sweep.rows.layer_times` takes it out (torch's is taken out where it is measured). Null where
    the runtime cannot time its layers.
    """
    backward_s: float | None
    """The same of its backward pass, in training steps."""
    energy_j: float | None
    """Energy of a call of the kernel, of the same runs as ``latency_s`` or of a loop of it alone, and of what
    ``energy_j`` of the row is of; in J. Null or left out where it was not measured.
    """
    algorithm: str
    """The algorithm that computes it; ``library`` for a runtime's own kernel."""
    options: Mapping[str, Any]
    """That algorithm's options where they differ from their defaults."""
    declined: str | None
    """Why the requested algorithm does not compute it. Null where it does."""
    kernel: str
    """Name of the kernel in the build."""


class Edge(TypedDict):
    """A convolution's output that another convolution reads: where a layout may have to change."""

    writer: str | None
    """Layer that wrote it. Null for the network's input and for other operators."""
    value: int
    """Number of the value; readers of the same value have the same."""
    bytes: int
    """Size of what the writer wrote."""
    reader: str | None
    """Layer that reads it. Null for other operators."""
    port: Literal["input", "output"]
    """``input`` where it is convolved, ``output`` where it is added to the result."""


def describe_layer(
    conv: Conv,
    algorithm: str,
    nonzeros: int,
    fused: Sequence[str] = (),
    declined: str | None = None,
    bias: bool | None = None,
) -> Layer:
    """Return one convolution as rows describe it.

    Parameters
    ----------
    algorithm : str
        The part that computes it, or ``library`` for a runtime's own kernel.
    nonzeros : int
        Weights that are not zero.
    fused : sequence of str
        The operators computed in the same kernel.
    declined : str, optional
        Why the requested algorithm does not compute it.
    bias : bool, optional
        Whether it adds a bias, where that is known.
    """
    convolution = asdict(conv)
    types = {kind: convolution.pop(f"{kind}_type") for kind in ("input", "weight", "accumulator", "output")}
    layer = {
        **convolution,
        "operator": "Conv",
        "inputs": [[conv.n, conv.c, conv.h, conv.w]],
        "output": [conv.n, conv.k, conv.p, conv.q],
        "p": conv.p,
        "q": conv.q,
        "types": types,
        "algorithm": algorithm,
        "declined": declined,
        "macs": conv.macs,
        "nonzeros": nonzeros,
        "fused": list(fused),
        **({} if bias is None else {"bias": bias}),
    }
    return cast(Layer, layer)
