"""The passes from a network to one TVM module in which every 2-D convolution is the algorithm's kernel.

Weights become parameters of ``main``, so that a built library holds code only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import tvm
from tvm import tirx

from dlas.lowering.graph.graph import Graph
from dlas.lowering.graph.half_precision import in_halves
from dlas.lowering.graph.importing import import_network
from dlas.lowering.graph.quantised.rewriting import in_integers
from dlas.lowering.graph.reshapes import in_rows
from dlas.lowering.graph.simplify import simplify
from dlas.lowering.kernels.attention import schedule_attention
from dlas.lowering.kernels.convolutions import ConvolutionKernel
from dlas.lowering.kernels.described import KernelLayers
from dlas.lowering.kernels.emitter import Emitter
from dlas.lowering.kernels.fusing import fuse_operators
from dlas.lowering.kernels.kernel import Kernel, schedule_kernel
from dlas.lowering.kernels.products.linear import linear_kernels
from dlas.lowering.kernels.regions import find_regions
from dlas.lowering.operators.layout_changes import schedule_changes
from dlas.lowering.operators.pooling import schedule_pooling
from dlas.lowering.operators.schedule import schedule_operators
from dlas.stack import GENERIC, Algorithm, Array, Edge, Layer, Network, Target


@dataclass
class LoweredNetwork:
    """A network as one module, not yet scheduled."""

    module: tvm.IRModule
    """``main(images, *parameters)`` and the kernels it calls."""
    parameters: dict[str, Array]
    """By name, in the order of ``main``."""
    kernels: dict[str, Kernel]
    """Convolutions and linear layers by PrimFunc name; every other PrimFunc is an ordinary operator."""
    layers: list[Layer]
    """The 2-D convolutions, ready for a row."""
    operators: list[Layer]
    """All kernels that ``main`` calls in order, convolutions too, ready for a row."""
    coverage: dict[str, float] | None
    """Shares of the ``convolutions`` and of their multiply-adds (``macs``) that use the requested algorithm,
    and of a quantised network the share of multiply-adds in ``integers``; None where there is no convolution.
    """
    edges: list[Edge]
    """Which convolution reads what another one wrote, as in :class:`dlas.lowering.kernels.edges.Edges`."""


def lower(network: Network, algorithm: Algorithm, batch: int, target: Target = GENERIC) -> LoweredNetwork:
    """Return ``network`` for inputs [batch, c, h, w], its convolutions computed by ``algorithm``.

    ``target`` is the one to schedule for: an algorithm may choose by it.

    Raises
    ------
    Unsupported
        If the network cannot be imported, or the algorithm names layers that it lacks.
    """
    # TVM's importers know the operators of torch and ONNX; layers keep the names that they have there.
    program = import_network(network, batch)
    # Weights are known now: what follows from them alone is computed once, not in every inference.
    graph = simplify(program)
    return lower_graph(graph, algorithm, target)


def lower_graph(graph: Graph, algorithm: Algorithm, target: Target = GENERIC) -> LoweredNetwork:
    """Return an imported network with its convolutions computed by ``algorithm``."""
    algorithm.check_layers(tuple(graph.names.values()))
    # Numbers of 16 bits stay so in memory, and sums are float32: in 16 bits they would lose too much.
    graph = in_halves(graph)
    # Quantised numbers stand around float operators: bytes are multiplied as bytes instead.
    graph = in_integers(graph)
    # Linear layers and operators behind them have rows [m, k]: reshapes between would keep them apart.
    graph = in_rows(graph)
    # A convolution takes the elementwise operators behind it: its result is read from registers.
    regions = find_regions(graph)
    # The algorithm writes the kernels; layouts change only where one reads what another wrote otherwise.
    emitter = Emitter(graph, algorithm=algorithm, target=target, regions=regions)
    written = emitter.emit_main()
    # All other operators become loops that TVM writes and fuses: it knows many more than are known here.
    fused = fuse_operators(written, target)
    # Linear layers have a space of their own, together with what TVM fused behind them.
    kernels: dict[str, Kernel] = {**emitter.kernels, **linear_kernels(fused.module)}
    # Rows say what each kernel computes, which loops do not tell any more.
    operators = KernelLayers(kernels, emitter.layouts, emitter.panels, emitter.stock).describe(fused)
    # Kernels are marked as such, linear ones too: a build replaces none of them.
    module = _with_kernels(fused.module, kernels)
    arrays = {parameter.name: array for parameter, array in emitter.parameters.items()}
    coverage = _coverage(emitter.layers, emitter.kernels, graph.quantised)
    return LoweredNetwork(module, arrays, kernels, emitter.layers, operators, coverage, emitter.edges.reads)


def schedule(
    lowered: LoweredNetwork,
    target: Target,
    scheduled: Callable[[Kernel, Target], tirx.PrimFunc] = schedule_kernel,
) -> tvm.IRModule:
    """Return the module with every loop nest scheduled: ready for ``relax.build``.

    ``scheduled`` schedules the kernels, by default with their minimal schedules; all other
    operators get one common parallel and vectorised schedule.
    """
    module = tvm.IRModule(dict(lowered.module.functions), attrs=lowered.module.attrs)
    # Kernels have schedules of their own; what is scheduled stays as it is in all later passes.
    for name, kernel in lowered.kernels.items():
        module.update_func(module.get_global_var(name), scheduled(kernel, target))
    # Layout changes are transposed in registers: loops would gather element by element.
    module = schedule_changes(module, target)
    # Pooling takes maxima over the rows of windows first, right before the row that needs them.
    module = schedule_pooling(module, target)
    # Products of run-time values are tiled like linear layers, and softmax stays in a row.
    module = schedule_attention(module, target)
    # One common schedule, parallel outside and vectorised inside, suits all that is left.
    return schedule_operators(module, target)


def _with_kernels(module: tvm.IRModule, kernels: Mapping[str, Kernel]) -> tvm.IRModule:
    """Return a module with the PrimFuncs of kernels in place."""
    for name, kernel in kernels.items():
        module.update_func(module.get_global_var(name), kernel.function)
    return module


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
