"""Networks as ONNX graphs: reference outputs by ONNX Runtime, number types, storage."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto

from dlas.networks.forward import EVALUATION_BATCH
from dlas.networks.onnx.counting import count_graph, graph_input
from dlas.networks.onnx.operators import graph_operators
from dlas.networks.operators import Operators, by_batch
from dlas.stack import Facts, Images, Network, Outputs

ONNX_FILE = "model.onnx"
IN_32_BITS = "session.x64quantprecision"
"""ONNX Runtime's setting that adds products of bytes in 32 bits on every x86 processor."""
VNNI = {"avx512_vnni", "avx_vnni"}
"""Linux's names of the instructions that add four products of bytes in 32 bits, on x86."""


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
            # Pad the last batch of a graph with a fixed batch, and cut its outputs.
            padding = (self.batch or len(part)) - len(part)
            full = np.concatenate([part, np.zeros((padding, *part.shape[1:]), part.dtype)])
            parts.append(session.run(None, {name: full})[0][: len(part)])
        return np.concatenate(parts).astype(np.float32, copy=False)

    def _open(self) -> Any:
        """Return the session, which the first call creates in the process that uses it."""
        if self._session is None:
            import onnxruntime  # here, because torch networks do not need it

            self._session = onnxruntime.InferenceSession(
                self.model.SerializeToString(),
                session_options(torch.get_num_threads()),
                providers=["CPUExecutionProvider"],
            )
        return self._session

    def count(self) -> None:
        """Write parameters, nonzeros, multiply-adds and bytes into :attr:`facts`.

        :class:`dlas.networks.onnx.counting.GraphCounts` defines the counts.
        """
        counts = count_graph(self.model)
        self.facts.parameters = counts.parameters
        self.facts.nonzeros = counts.nonzeros
        self.facts.macs = counts.macs
        self.facts.effective_macs = counts.effective_macs
        self.facts.model_bytes = counts.model_bytes
        self.facts.csr_bytes = counts.csr_bytes

    def operators(self) -> Operators:
        """Return the operators of the graph at its batch, or at one image and at two where it takes any.

        Empty where ONNX cannot infer a shape.
        """
        try:
            if self.batch:
                return {self.batch: graph_operators(self.model, self.batch)}
            return by_batch(lambda batch: graph_operators(self.model, batch))
        except ValueError:  # a shape is not known
            return {}

    def save(self, folder: Path) -> None:
        """Write ``model.onnx``, one file with its weights."""
        onnx.save(self.model, folder / ONNX_FILE)


def session_options(threads: int) -> Any:
    """Return ONNX Runtime's options for correct results on every processor, operators run sequentially.

    On x86 without VNNI, which lacks an instruction that adds four products of bytes
    in 32 bits, ONNX Runtime adds u8 x s8 in 16 bits, which saturate.  The option set
    here selects slower kernels that do not saturate.  With VNNI nothing saturates, and the
    option would select the slower kernels all the same: it is not set there.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    if not adds_bytes_in_32_bits():
        options.add_session_config_entry(IN_32_BITS, "1")
    return options


@functools.cache
def adds_bytes_in_32_bits(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this machine's processors have VNNI; False where the system does not tell."""
    try:
        found = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        return False
    return found is not None and not VNNI.isdisjoint(found[1].split())


def number_type(model: onnx.ModelProto) -> Literal["float32", "float16", "bfloat16", "int8"]:
    """Return the number type of a graph: integers, 16 bits or single precision."""
    graph = model.graph
    if any("QLinear" in node.op_type or node.op_type in INTEGER for node in graph.node):
        return "int8"
    stored = {tensor.data_type for tensor in graph.initializer}
    if TensorProto.FLOAT16 in stored:
        return "float16"
    if TensorProto.BFLOAT16 in stored:
        return "bfloat16"
    return "float32"


INTEGER = {"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger"}
"""Operators of integer networks, beside QLinear..."""
