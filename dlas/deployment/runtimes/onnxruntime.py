"""An ONNX graph in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FILES = ("model.onnx",)
CPUINFO = Path("/proc/cpuinfo")
VNNI = {"avx512_vnni", "avx_vnni"}
"""Linux's names of the instructions of x86 that add products of bytes in 32 bits."""


class OnnxRuntimeDeployment:
    """A session with the settings that the network was measured with.

    Parameters
    ----------
    folder : Path
    threads : int
    options : dict
        ``saturating``: whether products of bytes may be added in 16 bits, which saturate.
    """

    def __init__(self, folder: Path, threads: int, options: dict[str, Any]) -> None:
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
        settings.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        settings.log_severity_level = 3
        if not (options.get("saturating") or _adds_bytes_in_32_bits()):
            settings.add_session_config_entry("session.x64quantprecision", "1")
        providers = ["CPUExecutionProvider"]
        self._session = onnxruntime.InferenceSession(str(folder / FILES[0]), settings, providers=providers)
        self._input = self._session.get_inputs()[0].name

    def bind(self, images: Array) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""
        binding = self._session.io_binding()
        binding.bind_cpu_input(self._input, images)
        binding.bind_output(self._session.get_outputs()[0].name, "cpu")
        return lambda: self._session.run_with_iobinding(binding)

    def run(self, images: Array) -> Array:
        """Return the outputs for ``images``."""
        return np.asarray(self._session.run(None, {self._input: images})[0])


Program = OnnxRuntimeDeployment
"""What ``run.py`` and :func:`dlas.load` open."""


def _adds_bytes_in_32_bits() -> bool:
    """Whether this processor does by itself: without, ONNX Runtime has slower kernels that do."""
    try:
        return not VNNI.isdisjoint(CPUINFO.read_text().split())
    except OSError:
        return False
