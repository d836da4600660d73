"""MNN's networks as programs.

The package is imported where it is used, since it is optional.  Its scripts, such as ``mnnconvert``, and
its module ``MNN.tools`` are never: they install another package by themselves, and send messages.
"""

from __future__ import annotations

import importlib
import json
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from dlas.axes.compilers.programs.onnx_graph import MODEL
from dlas.networks.onnx.operators import operators_by_output
from dlas.networks.operators import without_reads
from dlas.stack import Images, Layer, Program

CONVERTED, OPERATORS = "model.mnn", "operators.json"
"""A build's files: MNN's network, and what is known of its operators by the tensors that they write."""
CONVERTER = "import sys, _tools; _tools.mnnconvert(['mnnconvert', *sys.argv[1:]])"
"""Calls the converter inside the package, which ``mnnconvert`` calls after it has installed another."""
SETTINGS = {"backend": "CPU", "precision": "high"}
"""Of a session: ``high`` keeps numbers of 16 bits out."""
PIECES = re.compile(r"(__group__\d+|__matmul_converted|_raster_\d+)+$")
"""Ends of the names of operators that MNN makes of one: a group of a convolution, a change of layout."""


class MnnProgram(Program):
    """A network in MNN.

    An inference copies the images into MNN's input, which other tensors overwrite in every run.

    Parameters
    ----------
    folder : Path
        With :data:`CONVERTED` and :data:`OPERATORS`.
    threads : int
        Of one operator; operators run one after the other.
    """

    def __init__(self, folder: Path, threads: int) -> None:
        self._known: dict[str, Layer] = json.loads((folder / OPERATORS).read_text())
        self._interpreter = imported().Interpreter(str(folder / CONVERTED))
        self._session = self._interpreter.createSession({**SETTINGS, "numThread": threads})
        self._input = self._interpreter.getSessionInput(self._session)

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""
        held, copy = _tensor(np.array(images, np.float32)), self._input.copyFrom
        infer, session = self._interpreter.runSession, self._session

        def once() -> Any:
            copy(held)
            return infer(session)

        return once

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        if code := self.bind(images)():
            raise RuntimeError(f"MNN cannot run this network: error {code}")
        output = self._interpreter.getSessionOutput(self._session)
        shape = output.getShape()
        copied = _tensor(np.empty(shape, np.float32))
        output.copyToHostTensor(copied)
        return np.array(copied.getNumpyData(), np.float32).reshape(shape)

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return the operators with their median seconds over ``repeats``.

        None if a convolution is not found by the tensor that it writes.  MNN splits some operators,
        and names the pieces after it.
        """
        held, kinds = _tensor(np.array(images, np.float32)), dict[str, str]()
        # The first run is slower.
        runs = [self._profile(held, kinds) for _ in range(repeats + 1)][1:]
        medians = {written: statistics.median(run[written] for run in runs) for written in kinds}
        return timed(self._known, medians, kinds)

    def _profile(self, held: Any, kinds: dict[str, str]) -> dict[str, float]:
        """Return operators' seconds in one run by the tensors that they write; fill in their kinds."""
        seconds: dict[str, float] = defaultdict(float)
        begun = 0.0

        def begin(_tensors: Any, _operator: Any) -> bool:
            nonlocal begun
            begun = time.perf_counter()
            return True

        def end(_tensors: Any, operator: Any) -> bool:
            passed = time.perf_counter() - begun
            written = PIECES.sub("", operator.getName())
            seconds[written] += passed
            kinds[written] = operator.getType()
            return True

        self._input.copyFrom(held)
        self._interpreter.runSessionWithCallBackInfo(self._session, begin, end)
        return seconds


def timed(known: dict[str, Layer], seconds: dict[str, float], kinds: dict[str, str]) -> list[Layer] | None:
    """Return operators with their seconds; None if they are not known, or a convolution is not among them.

    Parameters
    ----------
    known : dict
        What :func:`describe` returned.
    seconds, kinds : dict
        Times and MNN's types of operators, by the tensors that they write.
    """
    if not known or any("groups" in layer and written not in seconds for written, layer in known.items()):
        return None
    return [
        {**(known.get(written) or {"name": written, "operator": kinds[written]}), "latency_s": time_s}
        for written, time_s in seconds.items()
    ]


def imported() -> ModuleType:
    """Return the package ``MNN``."""
    return importlib.import_module("MNN")


def converter() -> list[str]:
    """Return the command that converts ``model.onnx`` in the current folder."""
    options = ("-f", "ONNX", "--modelFile", MODEL, "--MNNModel", CONVERTED, "--bizCode", "dlas")
    return [sys.executable, "-P", "-c", CONVERTER, *options]


def write_operators(model: onnx.ModelProto, batch: int, folder: Path) -> None:
    """Write what is known of a graph's operators into ``folder``."""
    (folder / OPERATORS).write_text(json.dumps(describe(model, batch)))


def describe(model: onnx.ModelProto, batch: int) -> dict[str, Layer]:
    """Return a graph's operators by the tensors that they write; none where shapes cannot be inferred."""
    try:
        known = operators_by_output(model, batch)
    except ValueError:
        return {}
    return {written: {**without_reads(operator)} for written, operator in known.items()}


def _tensor(values: npt.NDArray[np.float32]) -> Any:
    """Return an ``MNN.Tensor`` with a copy of an array, in its layout."""
    mnn = imported()
    return mnn.Tensor(values.shape, mnn.Halide_Type_Float, values, mnn.Tensor_DimensionType_Caffe)
