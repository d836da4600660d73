"""Write ``main`` with a kernel for each convolution, linear layers in panels, and values in their layouts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import tvm
from tvm import relax

from dlas.lowering.graph.graph import FUSES_BEHIND, as_array, is_constant, shape_of, unreadable
from dlas.lowering.graph.reshapes import multiplies_rows
from dlas.lowering.graph.rewriter import Rewriter
from dlas.lowering.kernels.convolutions import ConvolutionKernel, make_kernel, read_conv
from dlas.lowering.kernels.edges import Edges
from dlas.lowering.kernels.layouts import PLAIN, Layouts
from dlas.lowering.kernels.products.linear import linear, pack_linear
from dlas.lowering.kernels.regions import Region
from dlas.lowering.kernels.tail import ConvolutionTail, Operand
from dlas.stack import Algorithm, Array, Layer, Target, stored_type


@dataclass(kw_only=True)
class Emitter(Rewriter):
    """Writes ``main(images, *parameters)``, and notes what it writes."""

    algorithm: Algorithm
    """Computes the convolutions."""
    target: Target
    regions: Sequence[Region]
    """The convolutions that become kernels, with their tails."""
    parameters: dict[relax.Var, Array] = field(default_factory=dict)
    """The weights by their parameter of ``main``, in order."""
    kernels: dict[str, ConvolutionKernel] = field(default_factory=dict)
    """By the name of the PrimFunc."""
    layers: list[Layer] = field(default_factory=list)
    """All 2-D convolutions, in order."""
    panels: dict[str, str] = field(default_factory=dict)
    """The linear layer whose weight a parameter is, by the parameter's name."""
    stock: dict[relax.Var, Layer] = field(default_factory=dict)
    """Convolutions that are TVM's own, by the variable that holds the result."""
    edges: Edges = field(default_factory=Edges)

    def __post_init__(self) -> None:
        self.layouts = Layouts(self.builder)
        self._ends = {region.output: region for region in self.regions}
        self._replaced = {variable for region in self.regions for variable in region.variables}
        for variable, function in self.graph.operators.items():
            self.values[variable] = self.builder.add_func(function, variable.name_hint)

    def emit_main(self) -> tvm.IRModule:
        """Return a module of ``main`` and the kernels that it calls."""
        with self.builder.function("main"):
            with self.builder.dataflow():
                self.visit_all()
                self.edges.read(self.graph.output, None)
                output = self.builder.emit_output(self._plain(self.graph.output))
            self.builder.emit_func_output(output, params=[self.graph.images, *self.parameters])
        return self.builder.get()

    def visit(self, variable: relax.Var, value: relax.Expr) -> None:
        """Emit a binding, or a whole region where it ends."""
        if variable in self._ends:
            self._convolution(self._ends[variable])
        elif variable not in self._replaced:
            self.edges.passed(variable, value)
            super().visit(variable, value)
            if variable in self.graph.names:
                self._decline(self.values[variable], self.graph.names[variable], value)

    def call(self, variable: relax.Var, call: relax.Call) -> relax.Var:
        """Return the result of any operator that is not in a region."""
        if multiplies_rows(call):
            return self._linear(call, self.graph.linear.get(variable))
        arguments = [self.of(argument) for argument in call.args]
        followed = self.layouts.follow(call, arguments)
        if followed is not None:
            return followed
        return self.emit_call(call, [self.layouts.read(argument, PLAIN) for argument in arguments])

    def of(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new function, with constants as parameters."""
        if expression not in self.values and is_constant(expression):
            array = as_array(expression)
            # Legalisation needs the values of small integers (indices, shapes).
            if array.size == 1 or not np.issubdtype(array.dtype, np.floating):
                return expression
            self.values[expression] = self._parameter(f"constant{len(self.parameters)}", array)
        return super().of(expression)

    def _plain(self, expression: relax.Expr) -> relax.Expr:
        """Return an expression in terms of the new function, in NCHW."""
        return self.layouts.read(self.of(expression), PLAIN)

    def _parameter(self, name: str, array: Array) -> relax.Var:
        """Return a new parameter of ``main`` that holds ``array``."""
        variable = relax.Var(name, relax.TensorType(array.shape, str(array.dtype)))
        self.parameters[variable] = np.ascontiguousarray(array)
        return variable

    def _linear(self, call: relax.Call, layer: str | None) -> relax.Var:
        """Emit a linear layer with its weight in panels."""
        packed = pack_linear(as_array(call.args[1]), self.target)
        panels = self._parameter(f"linear{len(self.parameters)}", packed)
        if layer is not None:
            self.panels[panels.name] = layer
        accumulator, outputs = str(call.ty.dtype), shape_of(call)[-1]
        compute = partial(linear, outputs=outputs, target=self.target, accumulator=accumulator)
        kernel = {"primfunc_name_hint": "linear", "primfunc_attrs": {"op_pattern": FUSES_BEHIND}}
        return self.builder.emit_te(compute, self._plain(call.args[0]), panels, **kernel)

    def _decline(self, result: relax.Var, layer: str, call: relax.Call) -> None:
        """Note a convolution that TVM's own operator computes."""
        self.stock[result] = _stock_layer(layer, call)
        self.layers.append(self.stock[result])

    def _convolution(self, region: Region) -> None:
        """Emit a convolution and its tail as one kernel."""
        layer = self.graph.names[region.convolution]
        operands = [as_array(o) if is_constant(o) else o for o in region.operands]
        conv, weight = read_conv(layer, region), as_array(region.call.args[1])
        name = self._kernel_name(layer)
        tail = ConvolutionTail(region.steps, operands)
        kernel = make_kernel(self.algorithm, conv, weight, name, tail, self.target)
        self.kernels[kernel.name] = kernel
        self.layers.append(kernel.describe())
        self._record(region, layer)
        written = kernel.conv.output_layout
        arguments = [
            self.layouts.read(self.of(region.input.x), kernel.conv.input_layout),
            *(self._parameter(f"{kernel.name}.{i}", array) for i, array in enumerate(kernel.packed)),
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
            return self._parameter(name, operand)
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
