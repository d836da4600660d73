"""Lower a network to one TVM module in which every 2-D convolution is the algorithm's kernel.

Each convolution first becomes one kernel, with the operators that follow it as its
tail.  Everything else goes through TVM's own legalisation and fusion.  Weights become
parameters of ``main``, so that a built library holds code only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import tvm
from tvm import relax, tirx

from dlas.lowering.graph.half_precision import in_halves
from dlas.lowering.graph.importing import as_array, import_network
from dlas.lowering.graph.quantised.rewriting import in_integers
from dlas.lowering.graph.reshapes import in_rows, multiplies_rows
from dlas.lowering.graph.simplify import FUSES_BEHIND, Graph, is_constant, shape_of, simplify
from dlas.lowering.kernels.attention import schedule_attention
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel, read_conv
from dlas.lowering.kernels.described import KernelLayers
from dlas.lowering.kernels.edges import Edges
from dlas.lowering.kernels.fusing import fuse_operators
from dlas.lowering.kernels.kernel import Kernel, schedule_kernel
from dlas.lowering.kernels.layouts import PLAIN, Layouts
from dlas.lowering.kernels.products.linear import LinearKernel, linear, pack_linear
from dlas.lowering.kernels.regions import Region, find_regions, unreadable
from dlas.lowering.kernels.tail import Operand
from dlas.lowering.operators.layout_changes import schedule_changes
from dlas.lowering.operators.pooling import schedule_pooling
from dlas.lowering.operators.schedule import schedule_operators
from dlas.stack import GENERIC, Algorithm, Array, Edge, Layer, Network, Target, stored_type


@dataclass
class Lowered:
    """A network as one module, not yet scheduled.

    Parameters
    ----------
    module : tvm.IRModule
        ``main(images, *parameters)`` and the kernels it calls.
    parameters : dict of ndarray
        By name, in the order of ``main``.
    kernels : dict of Kernel
        Convolutions and linear layers by PrimFunc name; every other PrimFunc is an ordinary operator.
    layers : list of Layer
        The 2-D convolutions, ready for a row.
    operators : list of Layer
        All kernels that ``main`` calls in order, convolutions too, ready for a row.
    coverage : dict or None
        Shares of the ``convolutions`` and of their multiply-adds (``macs``) that
        use the requested algorithm, and of a quantised network the share of multiply-adds in
        ``integers``; None where there is no convolution.
    edges : list of Edge
        Which convolution reads what another one wrote, as in :class:`dlas.lowering.kernels.edges.Edges`.
    """

    module: tvm.IRModule
    parameters: dict[str, Array]
    kernels: dict[str, Kernel]
    layers: list[Layer]
    operators: list[Layer]
    coverage: dict[str, float] | None
    edges: list[Edge]


def lower(network: Network, algorithm: Algorithm, batch: int, target: Target = GENERIC) -> Lowered:
    """Return ``network`` for inputs [batch, c, h, w], its convolutions computed by ``algorithm``.

    ``target`` is the one to schedule for: an algorithm may choose by it.

    Raises
    ------
    Unsupported
        If the network cannot be imported, or the algorithm names layers that it lacks.
    """
    return lower_graph(simplify(import_network(network, batch)), algorithm, target)


def lower_graph(graph: Graph, algorithm: Algorithm, target: Target = GENERIC) -> Lowered:
    """Return an imported network with its convolutions computed by ``algorithm``."""
    algorithm.check_layers(tuple(graph.names.values()))
    typed = in_halves(graph) if graph.halves else in_integers(graph)
    quantised = typed is not graph and not graph.halves
    graph = in_rows(typed)
    emitter = _Emitter(algorithm, target, graph.linear)
    regions = {region.output: region for region in find_regions(graph)}
    replaced = {variable for region in regions.values() for variable in region.variables}
    for variable, function in graph.operators.items():
        emitter.values[variable] = emitter.builder.add_func(function, variable.name_hint)
    with emitter.builder.function("main"):
        with emitter.builder.dataflow():
            for variable, value in graph.bindings:
                if variable in regions:
                    emitter.convolution(regions[variable], graph.names[regions[variable].convolution])
                elif variable not in replaced:
                    emitter.operator(variable, value, graph.names.get(variable))
            emitter.edges.read(graph.output, None)
            output = emitter.builder.emit_output(emitter.plain(graph.output))
        emitter.builder.emit_func_output(output, params=[graph.images, *emitter.parameters])
    fused = fuse_operators(emitter.builder.get(), target)
    module = fused.module
    kernels: dict[str, Kernel] = {**emitter.kernels, **_linear_kernels(module)}
    operators = KernelLayers(kernels, emitter.layouts, emitter.panels, emitter.stock).describe(fused)
    for name, kernel in kernels.items():
        module.update_func(module.get_global_var(name), kernel.function)
    arrays = {parameter.name: array for parameter, array in emitter.parameters.items()}
    coverage = _coverage(emitter.layers, emitter.kernels, quantised)
    return Lowered(module, arrays, kernels, emitter.layers, operators, coverage, emitter.edges.reads)


def schedule(
    lowered: Lowered, target: Target, scheduled: Callable[[Kernel, Target], tirx.PrimFunc] = schedule_kernel
) -> tvm.IRModule:
    """Return the module with every loop nest scheduled: ready for ``relax.build``.

    ``scheduled`` schedules the kernels, by default with their minimal schedules; all other
    operators get one common parallel and vectorised schedule.
    """
    module = tvm.IRModule(dict(lowered.module.functions), attrs=lowered.module.attrs)
    for variable in module.get_global_vars():
        kernel = lowered.kernels.get(variable.name_hint)
        if kernel is not None:
            module.update_func(variable, scheduled(kernel, target))
    for written in (schedule_changes, schedule_pooling, schedule_attention, schedule_operators):
        module = written(module, target)
    return module


@dataclass
class _Emitter:
    """Writes the new ``main``, binding by binding.

    It notes whose weight a parameter is (``panels``), and convolutions that are TVM's own (``stock``).
    """

    algorithm: Algorithm
    target: Target
    linear: Mapping[relax.Var, str]
    builder: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    parameters: dict[relax.Var, Array] = field(default_factory=dict)
    kernels: dict[str, ConvolutionKernel] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    panels: dict[str, str] = field(default_factory=dict)
    stock: dict[relax.Var, Layer] = field(default_factory=dict)
    values: dict[relax.Expr, relax.Expr] = field(default_factory=dict)
    edges: Edges = field(default_factory=Edges)

    def __post_init__(self) -> None:
        self.layouts = Layouts(self.builder)

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new function, with constants as parameters."""
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([self.of(item) for item in expression.fields])
        if expression not in self.values and is_constant(expression):
            array = as_array(expression)
            # Legalisation needs the values of small integers (indices, shapes).
            if array.size == 1 or not np.issubdtype(array.dtype, np.floating):
                return expression
            self.values[expression] = self.parameter(f"constant{len(self.parameters)}", array)
        return self.values.get(expression, expression)

    def parameter(self, name: str, array: Array) -> relax.Var:
        """Return a new parameter of ``main`` that holds ``array``."""
        variable = relax.Var(name, relax.TensorType(array.shape, str(array.dtype)))
        self.parameters[variable] = np.ascontiguousarray(array)
        return variable

    def operator(self, variable: relax.Var, value: relax.Expr, layer: str | None) -> None:
        """Emit any other operator; a convolution among them (``layer`` names it) is recorded as declined."""
        self.edges.passed(variable, value)
        emitted = self._emitted(variable, value)
        self.values[variable] = emitted
        if layer is not None:
            self.stock[emitted] = _stock_layer(layer, value)
            self.layers.append(self.stock[emitted])

    def _emitted(self, variable: relax.Var, value: relax.Expr) -> relax.Var:
        if multiplies_rows(value):
            return self._linear(value, self.linear.get(variable))
        if isinstance(value, relax.Call):
            arguments = [self.of(argument) for argument in value.args]
            followed = self.layouts.follow(value, arguments)
            if followed is not None:
                return followed
            arguments = [self.layouts.read(argument, PLAIN) for argument in arguments]
            value = relax.Call(value.op, arguments, value.attrs, value.ty_args)
        elif isinstance(value, relax.TupleGetItem):
            value = relax.TupleGetItem(self.of(value.tuple_value), value.index)
        else:
            value = self.plain(value)
        return self.builder.emit(value)

    def _linear(self, call: relax.Call, layer: str | None) -> relax.Var:
        """Emit a linear layer with its weight in panels."""
        packed = pack_linear(as_array(call.args[1]), self.target)
        panels = self.parameter(f"linear{len(self.parameters)}", packed)
        if layer is not None:
            self.panels[panels.name] = layer
        accumulator, outputs = str(call.ty.dtype), shape_of(call)[-1]
        compute = partial(linear, outputs=outputs, target=self.target, accumulator=accumulator)
        kernel = {"primfunc_name_hint": "linear", "primfunc_attrs": {"op_pattern": FUSES_BEHIND}}
        return self.builder.emit_te(compute, self.plain(call.args[0]), panels, **kernel)

    def plain(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new function, in NCHW."""
        return self.layouts.read(self.of(expression), PLAIN)

    def convolution(self, region: Region, layer: str) -> None:
        """Emit a convolution and its tail as one kernel."""
        operands = [as_array(o) if is_constant(o) else o for o in region.operands]
        conv = read_conv(layer, region)
        weight = as_array(region.call.args[1])
        name = self._kernel_name(layer)
        kernel = make_kernel(self.algorithm, conv, weight, name, region.steps, operands, self.target)
        self.kernels[kernel.name] = kernel
        self.layers.append(kernel.describe())
        self._record(region, layer)
        written = kernel.conv.output_layout
        arguments = [
            self.layouts.read(self.of(region.input.x), kernel.conv.input_layout),
            *(self.parameter(f"{kernel.name}.{i}", array) for i, array in enumerate(kernel.packed)),
            *(self._operand(f"{kernel.name}.tail{i}", o, written) for i, o in enumerate(kernel.operands)),
        ]
        function = self.builder.add_func(kernel.function, kernel.name)
        output = relax.TensorType(kernel.conv.output_shape, stored_type(kernel.conv.output_type))
        self.values[region.output] = self.layouts.emit(
            relax.call_tir(function, arguments, out_ty=output), written, kernel.conv.k
        )

    def _record(self, region: Region, layer: str) -> None:
        """Record what a convolution and its tail read and write."""
        self.edges.read(region.input.x, layer)
        for operand in region.operands:
            self.edges.read(operand, layer, "output")
        self.edges.wrote(region.output, layer)

    def _operand(self, name: str, operand: Operand, layout: str) -> relax.Expr:
        """Return an operand of a tail as an argument; arrays are in their layout already."""
        if isinstance(operand, np.ndarray):
            return self.parameter(name, operand)
        return self.layouts.read(self.of(operand), layout)

    def _kernel_name(self, layer: str) -> str:
        """Return a unique PrimFunc name made of the layer's."""
        plain = "conv_" + re.sub(r"\W", "_", layer)
        name, count = plain, 1
        while name in self.kernels:
            count += 1
            name = f"{plain}_{count}"
        return name


def _stock_layer(name: str, call: relax.Call) -> Layer:
    """Return the layer entry of a convolution that TVM's own operator computes."""
    filters = shape_of(call.args[1])[call.attrs.kernel_layout.index("O")]
    macs = math.prod(shape_of(call)) * math.prod(shape_of(call.args[1])) // filters
    return {"name": name, "algorithm": "stock", "declined": unreadable(call), "macs": macs}


def _coverage(
    layers: Sequence[Layer], kernels: Mapping[str, ConvolutionKernel], quantised: bool
) -> dict[str, float] | None:
    """Return the shares that use the requested algorithm, and of multiply-adds in integers."""
    if not layers:
        return None
    requested = {name for name, kernel in kernels.items() if kernel.requested}
    used = [layer for layer in layers if layer.get("kernel") in requested]
    shares = {"convolutions": len(used) / len(layers), "macs": _share_of_macs(used, layers)}
    if quantised:
        integers = [layer for layer in layers if layer.get("types", {}).get("accumulator") == "int32"]
        shares["integers"] = _share_of_macs(integers, layers)
    return shares


def _share_of_macs(some: Sequence[Layer], layers: Sequence[Layer]) -> float:
    return sum(layer["macs"] for layer in some) / sum(layer["macs"] for layer in layers)


def _linear_kernels(module: tvm.IRModule) -> dict[str, LinearKernel]:
    """Return the kernels of linear layers in a module whose operators are fused, by name."""
    found = (
        LinearKernel.read(variable.name_hint, function)
        for variable, function in module.functions_items()
        if isinstance(function, tirx.PrimFunc)
    )
    return {kernel.name: kernel for kernel in found if kernel is not None}
