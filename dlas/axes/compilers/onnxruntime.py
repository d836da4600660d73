"""ONNX Runtime with all its graph optimisations, on processors or on a GPU through CUDA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.axes.compilers.programs.onnx_graph import MODEL, refuse_gpus, type_of, write_graph
from dlas.axes.compilers.programs.onnxruntime import OnnxProgram
from dlas.axes.compilers.programs.onnxruntime_cuda import OnnxCudaProgram, refuse_without_cuda
from dlas.axes.compilers.programs.onnxruntime_kernels import block_of, kernels_of
from dlas.errors import Unsupported
from dlas.networks.convolutions import library_layers
from dlas.networks.onnx.network import adds_bytes_in_32_bits
from dlas.stack import Algorithm, Build, Layer, Network, Operator, Program, Runtime, Target

SATURATING = "saturating = true"


@dataclass(frozen=True)
class OnnxRuntime(Runtime):
    """Run the network, exported to ONNX with its batch fixed, in ONNX Runtime.

    A GPU needs the package ``onnxruntime-gpu`` in place of ``onnxruntime``.
    """

    saturating: bool = False
    """Run an int8 network with ONNX Runtime's default settings. On x86 processors without VNNI it then adds
    products of bytes in 16 bits, which is faster and saturates: a build may exceed its tolerance, and the row
    is ``wrong``. Where that makes no difference, it is ``unsupported``.
    """

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write the ONNX graph for inputs [batch, c, h, w] into ``folder``."""
        on_cuda = target.kind == "cuda"
        if on_cuda:
            refuse_without_cuda()
        else:
            refuse_gpus("ONNX Runtime", target)
        if self.saturating:
            _refuse_without_saturation(network, target)
        write_graph(network, batch, folder)
        if on_cuda:
            OnnxCudaProgram.check(folder / MODEL)
        return Build(library_layers(network, batch))

    def kernels(
        self,
        network: Callable[[], Network],
        operators: Sequence[Operator],
        algorithm: Callable[[], Algorithm],
        target: Target,
        batch: int,
    ) -> list[Layer]:
        """Return the nodes that ONNX Runtime makes of the operators."""
        if target.on_gpu:
            raise Unsupported("which nodes ONNX Runtime makes for a GPU is known only once they have run")
        other = {layer.get("types", {}).get("output", "float32") for layer in operators} - {
            "float32",
            "int64",
        }
        if other:
            raise Unsupported(
                f"which nodes ONNX Runtime makes is known for float32, not for {sorted(other)[0]}"
            )
        return kernels_of(operators, block_of(target))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return a session on the graph in ``folder``."""
        if target.kind == "cuda":
            return OnnxCudaProgram(folder / MODEL, target.threads)
        return OnnxProgram(folder / MODEL, target.threads, self.saturating)


def _refuse_without_saturation(network: Network, target: Target) -> None:
    """Raise an error where ONNX Runtime saturates in none of its settings.

    Raises
    ------
    Unsupported
    """
    if target.on_gpu or adds_bytes_in_32_bits():
        raise Unsupported(f"{SATURATING} changes nothing here: bytes are multiplied and added in 32 bits")
    kind = type_of(network)
    if kind != "int8":
        raise Unsupported(f"{SATURATING} is for networks in int8, and this one is in {kind}")
