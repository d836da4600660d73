"""OpenVINO on the CPU, in single precision where the network is not quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlas.compilers.programs.onnx_graph import MODEL, refuse_gpus, write_graph
from dlas.compilers.programs.openvino import OpenVinoProgram, compile_graph
from dlas.errors import Unsupported
from dlas.networks.convolutions import library_layers
from dlas.stack import Build, Network, Program, Runtime, Target


@dataclass(frozen=True)
class OpenVino(Runtime):
    """Run the network, exported to ONNX with its batch fixed, in OpenVINO on the CPU.

    A float16 network is computed in single precision, as by ONNX Runtime, and an int8
    network in integers.  On x86 processors without VNNI, OpenVINO adds products of bytes
    in 16 bits, which saturate: a build may exceed its tolerance, and the row is ``wrong``.
    """

    def packages(self) -> Sequence[str]:
        """Return OpenVINO's."""
        return ["openvino"]

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write the ONNX graph for inputs [batch, c, h, w] into ``folder``, and check that it compiles."""
        self.verify()
        refuse_gpus("OpenVINO", target)
        write_graph(network, batch, folder)
        try:
            compile_graph(folder / MODEL, target.threads)
        except RuntimeError as error:
            raise Unsupported(f"OpenVINO does not compile this network: {_cause(error)}") from error
        return Build(library_layers(network, batch))

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the compiled graph of ``folder``."""
        return OpenVinoProgram(folder / MODEL, target.threads)


def _cause(error: RuntimeError) -> str:
    """Return an error of OpenVINO without the places in its sources, which come first."""
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join(line for line in lines if line and not line.startswith(("Exception from", "Check '")))
