"""ONNX Runtime sessions on a GPU, through CUDA."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from dlas.axes.compilers.programs.onnxruntime import OnnxProgram
from dlas.errors import Unsupported
from dlas.stack import Images, Layer

PROVIDER = "CUDAExecutionProvider"
OPTIONS = {"use_tf32": "0", "cudnn_conv_algo_search": "EXHAUSTIVE"}
"""Compute in float32, as all other compilers do, by the fastest of cuDNN's kernels."""
NO_FALLBACK = "session.disable_cpu_ep_fallback"
"""Setting that makes an operator without a kernel on the GPU an error: it would run on the processors."""


def refuse_without_cuda() -> None:
    """Raise an error if the installed ONNX Runtime runs nothing on CUDA, or no GPU is here.

    Raises
    ------
    Unsupported
    """
    there = onnxruntime.get_available_providers()
    if PROVIDER not in there:
        names = ", ".join(there)
        raise Unsupported(
            f"the installed ONNX Runtime has no {PROVIDER} (it has {names}): onnxruntime-gpu does, "
            "installed in place of onnxruntime"
        )
    if not torch.cuda.is_available():
        raise Unsupported("PyTorch, whose events time ONNX Runtime on a GPU, finds no CUDA device here")


class OnnxCudaProgram(OnnxProgram):
    """An ONNX Runtime session on the first GPU, which computes in a stream of torch's.

    Parameters
    ----------
    path : Path
        The ONNX file.
    threads : int
        Of the processors, which start the kernels.
    """

    def __init__(self, path: Path, threads: int) -> None:
        self._stream = torch.cuda.Stream()
        super().__init__(path, threads)

    @classmethod
    def check(cls, path: Path) -> None:
        """Check that every operator of a graph has a kernel on the GPU.

        Raises
        ------
        Unsupported
        """
        try:
            cls(path, 1)
        except Exception as error:  # ONNX Runtime has a class for each kind of failure, and no common one
            reason = str(error).strip().partition("\n")[0]
            raise Unsupported(f"ONNX Runtime does not run this network on the GPU: {reason}") from error

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images`` and waits for its end."""
        start = self._starter(images)

        def run_and_wait() -> None:
            start()
            self._stream.synchronize()

        return run_and_wait

    def timer(self, images: Images) -> Callable[[int], float]:
        """Return the seconds of a number of inferences between two CUDA events."""
        start = self._starter(images)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def seconds(runs: int) -> float:
            begin.record(self._stream)
            for _ in range(runs):
                start()
            end.record(self._stream)
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1e3

        return seconds

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return None: the profiler tells when kernels are started, not how long they take."""
        return None

    def _starter(self, images: Images) -> Callable[[], Any]:
        """Return a function that starts one inference; images and outputs stay on the GPU."""
        session, binding = self._session, self._session.io_binding()
        given = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(images), "cuda", 0)
        binding.bind_ortvalue_input(session.get_inputs()[0].name, given)
        binding.bind_output(session.get_outputs()[0].name, "cuda")
        return lambda: session.run_with_iobinding(binding)

    def _options(self) -> onnxruntime.SessionOptions:
        options = super()._options()
        options.add_session_config_entry(NO_FALLBACK, "1")
        return options

    def _providers(self) -> list[Any]:
        return [(PROVIDER, {**OPTIONS, "user_compute_stream": str(self._stream.cuda_stream)})]
