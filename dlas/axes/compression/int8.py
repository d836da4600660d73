"""8-bit quantisation: signed weights and unsigned activations."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry
from onnxruntime.quantization.shape_inference import quant_pre_process
from pydantic import Field

from dlas.axes.compression.precision.graphs import SmallerNumbers
from dlas.errors import Unsupported
from dlas.networks.exporting import quiet
from dlas.networks.onnx.counting import graph_input
from dlas.stack import Data, Images, Workspace

BATCH = 8
"""Batch of calibration if the graph takes any; all its activations are in memory at once."""
METHODS = {
    "minmax": CalibrationMethod.MinMax,
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
}
FLOAT_ONLY = {"BatchNormalization", "InstanceNormalization", "LayerNormalization"}
"""Operators that ONNX Runtime computes in float32 anyway; quantising would only round their weights."""


@dataclass(frozen=True)
class Int8(SmallerNumbers):
    """Post-training quantisation by ONNX Runtime: weights s8 per channel, activations u8 per tensor.

    Weights use all 8 bits, with zero as their zero point, so that pruned weights
    stay zero.  ONNX Runtime's advice for x86 processors without VNNI is
    ``reduce_range``, weights of 7 bits, because their kernels for u8 x s8 saturate.
    It is not used: a network would depend on the machine that quantised it, or
    lose a bit on all machines.  Instead, sessions there request kernels that do not
    saturate (:func:`dlas.networks.onnx.network.session_options`).

    References
    ----------
    DLAS, section 4.2.
    """

    BITS: ClassVar[int] = 8
    # A step of the output is 0.005 to 0.008 of its largest value.  Where some activations are rounded the
    # other way, as by ONNX Runtime without its integer kernels, outputs moved by none to two steps on the
    # four CIFAR networks and by four on ResNet-50 (random weights); six or more are accepted.
    TOLERANCE: ClassVar[float] = 0.05

    calibration: Literal["validation", "none"] = "validation"
    """Find the ranges of activations with validation images, or with images of normal noise."""
    images: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    """Number of images; at most those of the validation split."""
    method: Literal["minmax", "entropy", "percentile"] = "minmax"
    """How ranges follow from the observed values: all of them, those that lose least information, or 99.999 %
    of them.
    """

    def convert(self, model: onnx.ModelProto, data: Data, workspace: Workspace) -> onnx.ModelProto:
        """Return the graph quantised.

        Raises
        ------
        Unsupported
            If it has no convolution.
        """
        if not any(node.op_type == "Conv" for node in model.graph.node):
            raise Unsupported("the network has no convolution to quantise")
        count = min(self.images, len(data.validation))
        workspace.say(f"calibrating on {count} images")
        kinds = ({*QLinearOpsRegistry} | {*QDQRegistry}) - FLOAT_ONLY
        with tempfile.TemporaryDirectory() as name, quiet():
            exported, prepared, quantised = (Path(name) / f"{step}.onnx" for step in ("a", "b", "c"))
            onnx.save(model, exported)
            quant_pre_process(exported, prepared, skip_symbolic_shape=True)
            quantize_static(
                prepared,
                quantised,
                _Batches(model, self.calibration, count, data, workspace.seed),
                quant_format=QuantFormat.QDQ,
                op_types_to_quantize=sorted(kinds),
                per_channel=True,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
                calibrate_method=METHODS[self.method],
                extra_options={"CalibStridedMinMax": 1},  # free the activations after each batch
            )
            return onnx.load(quantised)


class _Batches(CalibrationDataReader):
    """Calibration images, read a batch at a time."""

    def __init__(
        self, model: onnx.ModelProto, source: Literal["validation", "none"], count: int, data: Data, seed: int
    ) -> None:
        value = graph_input(model)
        fixed = int(value.type.tensor_type.shape.dim[0].dim_value)
        size = fixed or min(BATCH, count)
        # Drawn at random, because images may be sorted by class.
        chosen = np.random.default_rng(seed).permutation(len(data.validation))[:count]
        if fixed:
            chosen = np.resize(chosen, -(-count // size) * size)  # the last batch must be full too
        self._batches = [chosen[start : start + size].tolist() for start in range(0, len(chosen), size)]
        self._waiting = iter(self._batches)
        self._name, self._source, self._data, self._seed = value.name, source, data, seed

    def __len__(self) -> int:
        return len(self._batches)

    def set_range(self, start_index: int, end_index: int) -> None:
        """Restrict the reader to these batches."""
        self._waiting = iter(self._batches[start_index:end_index])

    def get_next(self) -> dict[str, Images] | None:
        """Return the next batch by the input's name, None after the last."""
        indices = next(self._waiting, None)
        return None if indices is None else {self._name: self._read(indices)}

    def _read(self, indices: Sequence[int]) -> Images:
        if self._source == "validation":
            return self._data.validation[indices][0]
        generators = [np.random.default_rng((self._seed, index)) for index in indices]
        return np.stack([rng.standard_normal(self._data.shape, np.float32) for rng in generators])
