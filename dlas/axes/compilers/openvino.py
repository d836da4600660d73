"""OpenVINO on the CPU, in single precision or bfloat16 where the network is not quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import onnx

from dlas.axes.compilers.programs.onnx_graph import MODEL, refuse_gpus, type_of, write_graph
from dlas.axes.compilers.programs.openvino import (
    OpenVinoProgram,
    compile_graph,
    convolution_types,
    properties_for,
    read_properties,
    refuse_without_bfloat16,
    write_properties,
)
from dlas.errors import Unsupported
from dlas.networks.convolutions import library_layers
from dlas.stack import Build, Network, Program, Runtime, Target

BFLOAT16, INT8 = "bfloat16", "int8"
TOLERANCES = {
    "float32": 0.0,
    # Outputs of untrained networks moved by 0.01 (ResNet-18) to 0.12 (ResNet-50) of the largest.
    BFLOAT16: 0.25,
    # By 0.02 to 0.2 of the same two, where sums do not saturate either.
    INT8: 0.25,
}
"""Largest accepted relative deviation, where it is more than the network's."""


@dataclass(frozen=True)
class OpenVino(Runtime):
    """Run the network, exported to ONNX with its batch fixed, in OpenVINO on the CPU.

    A float16 network is computed in single precision, as by ONNX Runtime, a bfloat16 network
    in bfloat16, and an int8 network in integers.  On x86 processors without VNNI, OpenVINO
    adds products of bytes in 16 bits, which saturate: a build may exceed its tolerance, and
    the row is ``wrong``.  Elsewhere the outputs of an int8 network differ too: OpenVINO does
    not round where ONNX Runtime does.
    """

    precision: Literal["float32", "bfloat16"] = "float32"
    """What the operators of other networks compute in that are not in integers. OpenVINO rounds to bfloat16
    what they read, and adds in float32. Processors without instructions for bfloat16 are refused: OpenVINO
    would compute in float32 there.
    """

    def packages(self) -> Sequence[str]:
        """Return OpenVINO's."""
        return ["openvino"]

    def prepare(self, network: Network, target: Target, batch: int, folder: Path) -> Build:
        """Write the ONNX graph for inputs [batch, c, h, w] into ``folder``, and check that it compiles."""
        self.verify()
        refuse_gpus("OpenVINO", target)
        kind = type_of(network)
        precision = BFLOAT16 if kind == BFLOAT16 else self.precision
        if precision == BFLOAT16:
            refuse_without_bfloat16()
        properties = properties_for(precision)
        write_graph(network, batch, folder, single=kind == BFLOAT16)
        write_properties(properties, folder)
        try:
            compiled = compile_graph(folder / MODEL, target.threads, properties)
        except RuntimeError as error:
            raise Unsupported(f"OpenVINO does not compile this network: {_cause(error)}") from error
        layers = library_layers(network, batch)
        computed = convolution_types(compiled, onnx.load(folder / MODEL).graph)
        for layer in layers:
            layer["types"] |= computed.get(layer["name"], {})
        return Build(layers, tolerance=TOLERANCES[INT8 if kind == INT8 else precision])

    def load(self, folder: Path, network: Callable[[], Network], target: Target) -> Program:
        """Return the compiled graph of ``folder``."""
        return OpenVinoProgram(folder / MODEL, target.threads, read_properties(folder))


def _cause(error: RuntimeError) -> str:
    """Return an error of OpenVINO without the places in its sources, which come first."""
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join(line for line in lines if line and not line.startswith(("Exception from", "Check '")))
