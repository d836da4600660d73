"""Networks as ONNX graphs: reference outputs by ONNX Runtime, numbers they compute in, storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto

from dlas.networks.forward import EVALUATION_BATCH
from dlas.networks.onnx_counting import count_graph, graph_input
from dlas.stack import Facts, Images, Network, Outputs

ONNX_FILE = "model.onnx"


class OnnxNetwork(Network):
    """A network held as an ONNX graph; ONNX Runtime on the CPU is its reference.

    Parameters
    ----------
    model : onnx.ModelProto
        One input [n, c, h, w], one output [n, classes]; weights included.
    facts : Facts
    tolerance : float
        Largest accepted relative deviation of a build from :meth:`reference`.
    """

    def __init__(self, model: onnx.ModelProto, facts: Facts, tolerance: float = 1e-4) -> None:
        self.model = model
        self.facts = facts
        self.tolerance = tolerance
        self._session: Any = None

    @property
    def batch(self) -> int | None:
        """The batch that the graph is fixed to, or None where it takes any."""
        size = graph_input(self.model).type.tensor_type.shape.dim[0]
        return int(size.dim_value) or None

    def reference(self, images: Images) -> Outputs:
        """Return ONNX Runtime's outputs [n, classes]."""
        session = self._open()
        name, step = session.get_inputs()[0].name, self.batch or EVALUATION_BATCH
        parts = []
        for start in range(0, len(images), step):
            part = images[start : start + step]
            # A graph that is fixed to its batch gets a full one; what was added is cut off again.
            added = (self.batch or len(part)) - len(part)
            full = np.concatenate([part, np.zeros((added, *part.shape[1:]), part.dtype)])
            parts.append(session.run(None, {name: full})[0][: len(part)])
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _open(self) -> Any:
        """Return the session, made at the first call, in the process that uses it."""
        if self._session is None:
            import onnxruntime  # here, because torch networks do without it

            self._session = onnxruntime.InferenceSession(
                self.model.SerializeToString(),
                session_options(torch.get_num_threads()),
                providers=["CPUExecutionProvider"],
            )
        return self._session

    def count(self) -> None:
        """Write parameters, nonzeros, multiply-adds and bytes into :attr:`facts`.

        See :class:`dlas.networks.onnx_counting.GraphCounts` for what counts.
        """
        counted = count_graph(self.model)
        self.facts.parameters = counted.parameters
        self.facts.nonzeros = counted.nonzeros
        self.facts.macs = counted.macs
        self.facts.effective_macs = counted.effective_macs
        self.facts.model_bytes = counted.model_bytes
        self.facts.csr_bytes = counted.csr_bytes

    def save(self, folder: Path) -> None:
        """Write ``model.onnx``, one file with its weights."""
        onnx.save(self.model, folder / ONNX_FILE)


def session_options(threads: int) -> Any:
    """Return ONNX Runtime's options for right results on every processor, operators one after the other.

    Where a processor has no instruction that adds up four products of bytes in 32
    bits (x86 without VNNI), ONNX Runtime adds u8 x s8 in 16 bits, which
    saturate.  The option set here makes it use slower kernels instead that do
    not; processors with VNNI, and Arm, compute as they do without it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def number_type(model: onnx.ModelProto) -> Literal["float32", "float16", "int8"]:
    """Return in what kind of numbers a graph is held: integers, half or single precision."""
    graph = model.graph
    if any("QLinear" in node.op_type or node.op_type in INTEGER for node in graph.node):
        return "int8"
    if any(tensor.data_type == TensorProto.FLOAT16 for tensor in graph.initializer):
        return "float16"
    return "float32"


INTEGER = {"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger"}
"""Operators of integer networks, beside those called QLinear..."""
