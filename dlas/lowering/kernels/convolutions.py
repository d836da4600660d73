"""One convolution's kernel: packed weights, the algorithm's compute and schedule, and the tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import tvm
from tvm import s_tir, te, tirx
from tvm.ir.transform import Pass

from dlas.lowering.graph.graph import OPAQUE, shape_of
from dlas.lowering.kernels.kernel import Kernel, KernelOrigin
from dlas.lowering.kernels.layouts import block_array, block_shape
from dlas.lowering.kernels.regions import Region
from dlas.lowering.kernels.tail import ConvolutionTail, Epilogue, EpilogueStep, Operand, fold_affine
from dlas.networks.operator_names import of_relax
from dlas.schedules.direct import Direct
from dlas.stack import (
    BFLOAT16,
    BFLOAT16_BITS,
    BFLOAT16_STEP,
    GENERIC,
    Algorithm,
    Array,
    Conv,
    Decisions,
    Layer,
    Target,
    describe_layer,
    stored_type,
)


@dataclass(frozen=True)
class ConvolutionKernel(Kernel):
    """One convolution's kernel before scheduling."""

    name: str
    """Of the PrimFunc; distinct for every layer."""
    conv: Conv
    algorithm: Algorithm
    """The one that computes it: the requested one, or ``direct`` where that declines."""
    function: tirx.PrimFunc
    """Reads the input, the packed arrays and the operands; writes the output."""
    weight: Array
    """Including the folded scales of a batch norm after the convolution; [k, c / groups, r, s]."""
    packed: tuple[Array, ...]
    """The weight as ``algorithm.pack`` returns it."""
    steps: tuple[EpilogueStep, ...]
    """The tail."""
    operands: tuple[Operand, ...]
    """What the tail reads: an ndarray in the output's layout where the value is known at compile time, else a
    Relax expression.
    """
    declined: str | None = None
    """Why the requested algorithm declines the convolution."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The algorithm's options where they differ from their defaults."""
    requested: bool = True
    """Whether the requested algorithm, or one that it chose for the layer, computes the convolution: not if
    it is declined, or left to another algorithm for its weight.
    """

    def describe(self) -> Layer:
        """Return the kernel as a layer of a row."""
        nonzeros = int(np.count_nonzero(self.weight))
        bias = self._has_bias()
        fused = [of_relax(step.operator) for step in self.steps[bias:]]
        name = algorithm_name(self.algorithm)
        layer = describe_layer(self.conv, name, nonzeros, fused, self.declined, bias)
        if self.algorithm.first_sums is not None:
            layer["types"]["first_sums"] = self.algorithm.first_sums
        return {**layer, "options": dict(self.options), "kernel": self.name}

    def _has_bias(self) -> bool:
        """Whether the tail begins with the addition of a stored tensor."""
        first = self.steps[0] if self.steps else None
        if first is None or first.operator != "relax.add":
            return False
        read = [int(which) for kind, which in first.inputs if kind == "operand"]
        return any(isinstance(self.operands[operand], np.ndarray) for operand in read)

    @property
    def layer(self) -> str:
        """The convolution's name in the network."""
        return self.conv.name

    @property
    def tolerance(self) -> float:
        """The algorithm's, more where types are coarser than float32: in bfloat16 by a step of the output."""
        names = {self.conv.accumulator_type, self.conv.output_type}
        types = [np.dtype(name) for name in names - {BFLOAT16}]
        floating = [np.finfo(kind).eps for kind in types if np.issubdtype(kind, np.floating)]
        scaled = self.algorithm.tolerance * max(floating, default=0.0) / np.finfo(np.float32).eps
        return float(scaled + (BFLOAT16_STEP if BFLOAT16 in names else 0.0))

    @property
    def origin(self) -> KernelOrigin:
        """The algorithm: its options, and the code of its schedules."""
        own = type(self.algorithm)
        options = {name: str(value) for name, value in vars(self.algorithm).items()}
        identity = {"name": algorithm_name(self.algorithm), "class": own.__qualname__, "options": options}
        # Passes and arguments of an algorithm change measurements of any schedule.
        special = own.passes is not Algorithm.passes or own.arguments is not Algorithm.arguments
        return KernelOrigin(identity, own, special)

    def space(self, target: Target) -> Sequence[Decisions]:
        """Return the points of the algorithm's own design space, the best guess first."""
        return self.algorithm.space(self.conv, target)

    def apply(self, schedule: s_tir.Schedule, target: Target, decisions: Decisions) -> None:
        """Schedule the kernel in place according to one point of the algorithm's space."""
        self.algorithm.apply(schedule, self.conv, target, decisions)

    def minimal(self, target: Target) -> tirx.PrimFunc:
        """Return the PrimFunc with the algorithm's minimal schedule."""
        schedule = s_tir.Schedule(tvm.IRModule({self.name: self.function}))
        schedule.work_on(self.name)
        self.algorithm.schedule(schedule, self.conv, target)
        return schedule.mod[self.name]

    def passes(self, target: Target) -> Sequence[Pass]:
        """Return the algorithm's TIR passes."""
        return self.algorithm.passes(self.conv, target)

    def arguments(self) -> tuple[Array, ...] | None:
        """Return the algorithm's packed arrays for measurements."""
        return self.algorithm.arguments(self.weight, self.conv)


def algorithm_name(algorithm: Algorithm) -> str:
    """Return the part's name, that of its file; a form has the name of its part."""
    return algorithm.form_of or type(algorithm).__module__.rpartition(".")[2]


def set_options(algorithm: Algorithm) -> dict[str, Any]:
    """Return the options of a part whose values are not their defaults."""
    options: Sequence[Field[Any]] = fields(algorithm) if is_dataclass(algorithm) else ()
    values = {option.name: getattr(algorithm, option.name) for option in options}
    return {option.name: values[option.name] for option in options if values[option.name] != option.default}


def read_conv(name: str, region: Region) -> Conv:
    """Return the convolution of a region, in NCHW."""
    attributes = region.call.attrs
    n, c, h, w = shape_of(region.input.x)
    k, _, r, s = shape_of(region.call.args[1])
    return Conv(
        name,
        *(n, c, h, w, k, r, s),
        strides=(int(attributes.strides[0]), int(attributes.strides[1])),
        padding=region.input.padding,
        dilation=(int(attributes.dilation[0]), int(attributes.dilation[1])),
        groups=int(attributes.groups),
        padding_value=region.input.padding_value,
        **_types(region),
    )


def _types(region: Region) -> dict[str, Any]:
    """Return the types of what a convolution reads and writes, by their fields in ``Conv``."""
    values = {"input": region.input.x, "weight": region.call.args[1]}
    values |= {"accumulator": region.call, "output": region.output}
    types = {f"{name}_type": str(value.ty.dtype) for name, value in values.items()}
    # Nothing else is convolved with such weights.
    if types["weight_type"] == BFLOAT16_BITS:
        types = {name: BFLOAT16 if kind == BFLOAT16_BITS else kind for name, kind in types.items()}
    return types


def make_kernel(
    algorithm: Algorithm,
    conv: Conv,
    weight: Array,
    name: str,
    tail: ConvolutionTail = ConvolutionTail(),  # noqa: B008 - it is frozen
    target: Target = GENERIC,
) -> ConvolutionKernel:
    """Return the kernel of one convolution, by ``direct`` if the algorithm declines it.

    Parameters
    ----------
    weight : ndarray, [k, c / groups, r, s]
    name : str
        The PrimFunc's name, an identifier.
    tail : ConvolutionTail
        Leading scales and shifts are folded into weight and bias.
    target : Target
        An algorithm may depend on it.
    """
    asked = algorithm.for_layer(conv, target)
    declined = asked.supports(conv)
    weight, steps, operands = fold_affine(weight, conv, tail.steps, tail.operands)
    chosen = asked.for_weight(weight, conv) if declined is None else Direct()
    if chosen is not asked:
        chosen = chosen.for_layer(conv, target)
    read, written = chosen.layouts(conv, target)
    conv = replace(conv, input_layout=read, output_layout=written)
    operands = tuple(block_array(o, written) if isinstance(o, np.ndarray) else o for o in operands)
    packed = tuple(np.ascontiguousarray(array) for array in chosen.pack(weight, conv))
    function = _write(chosen, conv, packed, steps, operands)
    function = function.with_attr("global_symbol", name).with_attr("op_pattern", OPAQUE)
    requested = declined is None and algorithm_name(asked) == algorithm_name(chosen)
    return ConvolutionKernel(
        *(name, conv, chosen, function, weight, packed, steps, operands),
        declined=declined,
        options=set_options(asked if requested else chosen),
        requested=requested,
    )


def _write(
    algorithm: Algorithm,
    conv: Conv,
    packed: Sequence[Array],
    steps: tuple[EpilogueStep, ...],
    operands: Sequence[Operand],
) -> tirx.PrimFunc:
    """Return the PrimFunc of (input, *packed, *operands, output)."""
    x = te.placeholder(conv.input_shape, stored_type(conv.input_type), "x")
    arrays = [te.placeholder(a.shape, str(a.dtype), f"packed{i}") for i, a in enumerate(packed)]
    beside = [
        te.placeholder(*_shape_and_type(operand, conv.output_layout), f"operand{i}")
        for i, operand in enumerate(operands)
    ]
    result = algorithm.compute(x, arrays, conv, Epilogue(steps, tuple(beside)))
    if isinstance(result, tvm.tirx.PrimFunc):
        return result
    return te.create_prim_func([x, *arrays, *beside, result])


def _shape_and_type(operand: Operand, layout: str) -> tuple[tuple[int, ...], str]:
    """Return an operand's shape and type: an array's own, a Relax expression's in ``layout``."""
    if isinstance(operand, np.ndarray):
        return operand.shape, str(operand.dtype)
    return block_shape(shape_of(operand), layout), str(operand.ty.dtype)
