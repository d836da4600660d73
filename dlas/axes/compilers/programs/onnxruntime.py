"""ONNX Runtime sessions as programs."""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from dlas.axes.compilers.programs.onnx_graph import MODEL
from dlas.axes.compilers.programs.onnxruntime_nodes import describe_node, nodes_of
from dlas.networks.layer_names import CallNames, layer_of_node
from dlas.networks.onnx.network import IN_32_BITS, session_options
from dlas.stack import Images, Layer, Program

KERNEL = "_kernel_time"
"""Suffix that ONNX Runtime's profiler appends to a node's name."""
BLOCKED = "_nchwc"
"""Suffix of a tensor's name in the name of the kernel that writes it in blocks of channels."""
INSERTED = re.compile("^InsertedPrecisionFreeCast_|_token_[0-9]+$")
"""Additions to the names of kernels whose number type or layout ONNX Runtime has changed."""
ERRORS = 3
"""ONNX Runtime's level of messages from errors on."""
ACTIVATIONS = {"Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"}


class OnnxProgram(Program):
    """An ONNX Runtime session.

    Parameters
    ----------
    path : Path
        The ONNX file.
    threads : int
        Of one operator; operators run one after the other, as in the other compilers.
    saturating : bool
        Add products of bytes in 16 bits where this processor lacks an instruction for sums of 32.
    """

    def __init__(self, path: Path, threads: int, saturating: bool = False) -> None:
        self._path = path
        self._threads = threads
        self._saturating = saturating
        self._session = self._open(self._options())

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, bound to the session."""
        binding = self._session.io_binding()
        binding.bind_cpu_input(self._session.get_inputs()[0].name, np.ascontiguousarray(images))
        binding.bind_output(self._session.get_outputs()[0].name, "cpu")
        session = self._session
        return lambda: session.run_with_iobinding(binding)

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        name = self._session.get_inputs()[0].name
        return np.asarray(self._session.run(None, {name: images})[0])

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return the nodes with their median seconds over ``repeats``; a convolution by its layer's name."""
        with tempfile.TemporaryDirectory() as folder:
            options = self._options()
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder) / "profile")
            options.optimized_model_filepath = str(Path(folder) / MODEL)
            options.log_severity_level = ERRORS  # it warns that the graph is for this processor alone
            session = self._open(options)
            name = session.get_inputs()[0].name
            for _ in range(repeats + 1):
                session.run(None, {name: images})
            events = json.loads(Path(session.end_profiling()).read_text())
            optimised = onnx.load(str(Path(folder) / MODEL)).graph
        return _timed(events, repeats, kernel_layers(onnx.load(str(self._path)).graph), optimised)

    def _options(self) -> onnxruntime.SessionOptions:
        options = session_options(self._threads)
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        if self._saturating:
            options.add_session_config_entry(IN_32_BITS, "0")
        return options

    def _open(self, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(str(self._path), options, providers=self._providers())

    def _providers(self) -> list[Any]:
        """Return what runs operators, with its options."""
        return ["CPUExecutionProvider"]


def kernel_layers(graph: onnx.GraphProto) -> dict[str, str]:
    """Return the layer of each of ONNX Runtime's convolution kernels, by the kernel's name.

    A kernel has the node's name or, in the blocked layout, that of the tensor it
    writes: the convolution's own or that of the activation fused into it.
    """
    layers = {}
    for index, node in enumerate(graph.node):
        if node.op_type == "Conv":
            layer = layer_of_node(node, f"node{index}")
            layers[node.name] = layers[node.output[0] + BLOCKED] = layer
        elif node.op_type in ACTIVATIONS and node.input[0] + BLOCKED in layers:
            layers.setdefault(node.output[0] + BLOCKED, layers[node.input[0] + BLOCKED])
    return layers


def _timed(
    events: list[dict[str, Any]], repeats: int, layers: dict[str, str], optimised: onnx.GraphProto
) -> list[Layer]:
    """Return every node with what it computes and its median seconds over the last ``repeats`` runs."""
    samples: dict[str, list[float]] = defaultdict(list)
    told: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(KERNEL):
            name = event["name"].removesuffix(KERNEL)
            samples[name].append(event["dur"] * 1e-6)
            told[name] = event["args"]
    (nodes, stored), calls = nodes_of(optimised), CallNames()
    return [
        {
            "name": calls.next(layers.get(INSERTED.sub("", name), name)),
            **describe_node(nodes.get(name), told[name], stored),
            "latency_s": statistics.median(seconds[-repeats:]),
        }
        for name, seconds in samples.items()
    ]
