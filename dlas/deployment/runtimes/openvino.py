"""An ONNX graph in OpenVINO."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FILES = ("model.onnx",)


class OpenVinoDeployment:
    """A compiled graph with the settings that the network was measured with.

    Parameters
    ----------
    folder : Path
    threads : int
    options : dict
        ``properties`` of OpenVINO.
    """

    def __init__(self, folder: Path, threads: int, options: dict[str, Any]) -> None:
        # OpenVINO imports it to send messages over the network; without it, it sends none.
        sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
        openvino = importlib.import_module("openvino")
        settings = {**options["properties"], "INFERENCE_NUM_THREADS": threads}
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(str(folder / FILES[0])), "CPU", settings)
        self._tensor = lambda images: openvino.Tensor(images, shared_memory=True)
        self._request = compiled.create_infer_request()

    def bind(self, images: Array) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""
        self._request.set_input_tensor(self._tensor(images))
        return lambda: self._request.infer(share_outputs=True)

    def run(self, images: Array) -> Array:
        """Return the outputs for ``images``."""
        self.bind(images)()
        return np.array(self._request.get_output_tensor().data)


Program = OpenVinoDeployment
"""What ``run.py`` and :func:`dlas.load` open."""
