"""Half precision: weights and activations in float16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from dlas.axes.compression.precision.graphs import SmallerNumbers
from dlas.stack import Data, Workspace


@dataclass(frozen=True)
class Float16(SmallerNumbers):
    """Converts the network to float16; images and outputs stay float32.

    Weights beyond the range of float16 become its largest numbers, and nonzero
    weights that would round to zero its smallest.  On processors without
    half-precision kernels ONNX Runtime, the reference, computes in float32 with the
    rounded weights: the network is half as large and no faster.

    References
    ----------
    DLAS, section 4.2.
    """

    BITS: ClassVar[int] = 16
    # Rounding what layers read moved outputs by 1.0e-2 of the largest on MobileNetV2, by 1.7e-2 on ResNet-50
    # (random weights, 224 by 224), by less than 1e-3 on the four CIFAR networks; other orders may double it.
    TOLERANCE: ClassVar[float] = 4e-2

    def convert(self, model: onnx.ModelProto, data: Data, workspace: Workspace) -> onnx.ModelProto:
        """Return the graph in float16."""
        # Here, so that restoring a network does not import them.
        from onnxruntime.quantization.onnx_model import ONNXModel
        from onnxruntime.transformers.float16 import convert_float_to_float16

        converted = ONNXModel(convert_float_to_float16(model, keep_io_types=True))
        converted.topological_sort()  # the casts of images and outputs were appended last
        return converted.model
