"""OpenVINO's compiled graphs as programs.

The package is imported where it is used, since it is optional.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from dlas.errors import Unsupported
from dlas.networks.layer_names import CallNames, layer_of_node
from dlas.networks.onnx.operators import first_output, operators_by_output
from dlas.networks.operators import without_reads
from dlas.stack import Computation, Images, Layer, Operator, Program, Types

PROPERTIES = {
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,
}
"""OpenVINO's properties that all programs share."""
PRECISION = "INFERENCE_PRECISION_HINT"
"""The type of operators in floating point; without it OpenVINO takes bfloat16 on processors that have it."""
HINTS = {"float32": "f32", "bfloat16": "bf16"}
THREADS = "INFERENCE_NUM_THREADS"
SETTINGS = "openvino.json"
"""The properties of a build."""
CAPABILITIES, BFLOAT16 = "OPTIMIZATION_CAPABILITIES", "BF16"
TELEMETRY = "openvino_telemetry"
"""A package that sends a message over the network when OpenVINO is imported."""
WITHOUT_BIAS = "/WithoutBiases"
"""Suffix of a convolution's name where the ONNX node has a bias, which becomes an operator of its own."""
NODES = "originalLayersNames"
"""What OpenVINO calls the ONNX nodes that an operator stands for, joined by commas."""
KIND, CONVOLUTION = "layerType", "Convolution"
COMPUTED, WRITTEN = "runtimePrecision", "outputPrecisions"
TYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
"""Types in floating point by what OpenVINO calls them."""
OWN = {"Reorder": "LayoutChange"}
"""OpenVINO's operators that stand for no node, by what rows call them."""
SHORTEST_S = 0.5e-6
"""Time of an operator that OpenVINO's whole microseconds give as none."""


class OpenVinoProgram(Program):
    """A graph compiled by OpenVINO for the CPU.

    Parameters
    ----------
    path : Path
        The ONNX file.
    threads : int
        Of one operator; operators run one after the other, as in the other compilers.
    properties : mapping
        What :func:`properties_for` returned.
    """

    def __init__(self, path: Path, threads: int, properties: Mapping[str, Any]) -> None:
        self._path = path
        self._threads = threads
        self._properties = properties
        self.compiled = compile_graph(path, threads, properties)
        """The ``openvino.CompiledModel``."""

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, which share their memory with OpenVINO."""
        images = np.ascontiguousarray(images)
        return functools.partial(_infer, _request(self.compiled, images), images)

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        images = np.ascontiguousarray(images)
        request = _request(self.compiled, images)
        request.infer(share_outputs=True)
        return np.array(request.get_output_tensor().data)

    def layers(self, images: Images, repeats: int) -> list[Layer]:
        """Return the operators with their mean seconds over ``repeats``; a convolution by its layer's name.

        OpenVINO counts in whole microseconds and tells the mean of all inferences alone;
        that of the first one, which is slower, is taken out.
        """
        compiled = compile_graph(self._path, self._threads, {**self._properties, "PERF_COUNT": True})
        images = np.ascontiguousarray(images)
        request = _request(compiled, images)
        request.infer(share_outputs=True)
        first = _means(request)
        for _ in range(repeats):
            request.infer(share_outputs=True)
        model = onnx.load(str(self._path))
        names, known = operator_layers(model.graph), operators_of(compiled, model, len(images))
        seconds: dict[str, float] = {}
        described: dict[str, Computation] = {}
        for name, mean in _means(request).items():
            warm = max(((repeats + 1) * mean - first[name]) / repeats, SHORTEST_S)
            layer = names.get(name.removesuffix(WITHOUT_BIAS), name)
            # A convolution's bias may be an operator of its own.
            seconds[layer] = seconds.get(layer, 0.0) + warm
            described[layer] = {**known.get(name, {}), **described.get(layer, {})}
        return [{**described[layer], "name": layer, "latency_s": time_s} for layer, time_s in seconds.items()]


def properties_for(precision: str) -> dict[str, Any]:
    """Return OpenVINO's properties of a program whose operators in floating point compute in ``precision``.

    Parameters
    ----------
    precision : str
        One of :data:`HINTS`.
    """
    return {**PROPERTIES, PRECISION: HINTS[precision]}


def write_properties(properties: Mapping[str, Any], folder: Path) -> None:
    """Write the properties of a build into its folder."""
    (folder / SETTINGS).write_text(json.dumps(dict(properties)))


def read_properties(folder: Path) -> dict[str, Any]:
    """Return the properties of the build in a folder."""
    properties: dict[str, Any] = json.loads((folder / SETTINGS).read_text())
    return properties


def refuse_without_bfloat16() -> None:
    """Raise an error if this processor has no instructions for bfloat16: OpenVINO would compute in float32.

    Raises
    ------
    Unsupported
    """
    known = capabilities()
    if BFLOAT16 not in known:
        raise Unsupported(
            "OpenVINO computes in bfloat16 on processors that have it, and in float32 on this one, "
            f"which has {', '.join(known)}"
        )


def capabilities() -> list[str]:
    """Return the types and features that OpenVINO finds in this machine's processor."""
    return [str(name) for name in imported().Core().get_property("CPU", CAPABILITIES)]


def compile_graph(path: Path, threads: int, properties: Mapping[str, Any]) -> Any:
    """Return the ``openvino.CompiledModel`` of an ONNX file.

    Parameters
    ----------
    threads : int
        Threads of an operator. OpenVINO binds none to a processor, as ONNX Runtime does not: they
        share the processors that this process is bound to.
    properties : mapping
        OpenVINO's, beside the number of threads.

    Raises
    ------
    RuntimeError
        If OpenVINO does not support the graph.
    """
    core = imported().Core()
    return core.compile_model(core.read_model(str(path)), "CPU", {**properties, THREADS: threads})


def imported() -> ModuleType:
    """Return the package ``openvino``, imported without its telemetry.

    Threads that send messages would disturb measurements, and nobody has agreed to them.
    """
    if "openvino" in sys.modules:
        return sys.modules["openvino"]
    sys.modules[TELEMETRY] = None  # type: ignore[assignment]  # OpenVINO's import of it fails then
    try:
        return importlib.import_module("openvino")
    finally:
        del sys.modules[TELEMETRY]


def operator_layers(graph: onnx.GraphProto) -> dict[str, str]:
    """Return the layer of each convolution by the name that OpenVINO gives its operator.

    That is the node's name, or that of its output where the node has none.
    """
    layers: dict[str, str] = {}
    calls = CallNames()
    for index, node in enumerate(graph.node):
        if node.op_type == "Conv":
            layer = calls.next(layer_of_node(node, f"node{index}"))
            layers |= {name: layer for name in (node.name, node.output[0]) if name}
    return layers


def convolution_types(compiled: Any, graph: onnx.GraphProto) -> dict[str, Types]:
    """Return the types that OpenVINO computes each convolution in, where it does in floating point."""
    names = operator_layers(graph)
    types: dict[str, Types] = {}
    for operator in compiled.get_runtime_model().get_ordered_ops():
        told = operator.get_rt_info()
        layer = names.get(operator.get_friendly_name().removesuffix(WITHOUT_BIAS))
        if layer is not None and _text(told, KIND) == CONVOLUTION:
            types[layer] = _types(told)
    return types


def operators_of(compiled: Any, model: onnx.ModelProto, batch: int) -> dict[str, Computation]:
    """Return what each operator of a compiled graph computes, by the operator's name.

    OpenVINO tells which nodes of the ONNX graph each of its operators stands for.
    """
    try:
        known = operators_by_output(model, batch)
    except ValueError:  # shapes that ONNX cannot infer
        return {}
    outputs = {name: first_output(node) for node in model.graph.node for name in (node.name, *node.output)}
    described: dict[str, Computation] = {}
    for operator in compiled.get_runtime_model().get_ordered_ops():
        told = operator.get_rt_info()
        nodes, kind = filter(None, _text(told, NODES).split(",")), _text(told, KIND)
        layers = [known[outputs[name]] for name in nodes if outputs.get(name) in known]
        own: Computation = {"operator": OWN.get(kind, kind) or None}
        layer: Computation = _together(layers) if layers else own
        if types := _types(told):
            layer = {**layer, "types": {**layer.get("types", {}), **types}}
        described[operator.get_friendly_name()] = layer
    return described


def _types(told: Mapping[str, Any]) -> Types:
    """Return the types of an operator of which OpenVINO tells this, empty where it computes in integers."""
    kind = TYPES.get(_text(told, COMPUTED))
    if kind is None:
        return {}
    types: Types = {"input": kind, "output": TYPES.get(_text(told, WRITTEN), kind)}
    if _text(told, KIND) == CONVOLUTION:
        types |= {"weight": kind, "accumulator": "float32"}
    return types


def _text(told: Mapping[str, Any], name: str) -> str:
    return str(told[name].astype(str)) if name in told else ""


def _together(layers: Sequence[Operator]) -> Operator:
    """Return the operators that are computed together as one: that with the most work, and the others."""
    main = max(layers, key=lambda layer: layer.get("macs") or 0)
    fused = [layer.get("operator") or "" for layer in layers if layer is not main]
    return {**without_reads(main), "fused": fused, "output": layers[-1]["output"]}


def _request(compiled: Any, images: Images) -> Any:
    """Return an ``openvino.InferRequest`` whose input is the memory of ``images``, which the caller keeps."""
    request = compiled.create_infer_request()
    request.set_input_tensor(imported().Tensor(images, shared_memory=True))
    return request


def _infer(request: Any, _images: Images) -> Any:
    """Run an inference on images that must not be freed before; the next one writes the same outputs."""
    return request.infer(share_outputs=True)


def _means(request: Any) -> dict[str, float]:
    """Return the mean seconds of the operators that ran, by their names."""
    return {
        operator.node_name: operator.real_time.total_seconds()
        for operator in request.get_profiling_info()
        if operator.status == operator.Status.EXECUTED
    }
