"""CUDA's run-time compiler and TVM's runtime for CUDA, where pip has put them."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dlas.bench.measuring.gpu import Gpu
from dlas.errors import Unsupported

RUNTIME = "libtvm_runtime_cuda.so"
"""TVM's runtime for CUDA, beside its other libraries."""
INSTALL = "pip install -e '.[cuda]' in this project's folder, or pip install 'dlas[cuda]'"
PRECISE = "--ftz=false --prec-div=true --prec-sqrt=true"
"""TVM asks for fast arithmetic, which flushes small numbers to zero and divides inexactly."""


def unusable(gpu: Gpu, runtime: Path | None = None) -> str | None:
    """Return why programs cannot be built for a GPU and run on it with what is installed, or None.

    Parameters
    ----------
    runtime : Path, optional
        TVM's runtime for CUDA; by default the installed one.
    """
    runtime = runtime or runtime_library()
    if not runtime.is_file():
        return f"the installed TVM runs nothing on CUDA: {runtime.name} is not beside its libraries"
    if reason := compiler_missing():
        return reason
    needed = re.search(rb"libcudart\.so\.(\d+)", runtime.read_bytes())
    if needed and gpu.cuda[0] < int(needed[1]):
        has = "{}.{}".format(*gpu.cuda)
        return f"its driver runs CUDA {has}, and TVM's runtime was built for CUDA {int(needed[1])}"
    compiled = architectures()
    if compiled and gpu.arch not in compiled:
        return f"{gpu.name} is {gpu.arch}, and the installed compiler builds for {compiled[0]} and newer"
    return None


def compiler_missing() -> str | None:
    """Return why TVM cannot call CUDA's run-time compiler, or None."""
    try:
        version("cuda-bindings")
    except PackageNotFoundError:
        return f"cuda-bindings, by which TVM calls CUDA's compiler, is not installed: {INSTALL}"
    if "CUDA_PATH" not in os.environ and headers() is None:
        return f"the headers of CUDA, which its compiler reads, are not installed: {INSTALL}"
    return None


@functools.cache
def architectures() -> list[str]:
    """Return the architectures that the installed run-time compiler builds for, the oldest first."""
    from cuda.bindings import nvrtc

    _, count = nvrtc.nvrtcGetNumSupportedArchs()
    _, numbers = nvrtc.nvrtcGetSupportedArchs()
    return [f"sm_{number}" for number in sorted(numbers[:count])]


@functools.cache
def headers() -> tuple[Path, Path] | None:
    """Return the folders of CUDA's headers and of its C++ library, or None."""
    from cuda import pathfinder

    found = [pathfinder.find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    return None if None in found else (Path(found[0]), Path(found[1]))


def point_tvm_to_compiler() -> None:
    """Tell TVM where CUDA's headers are, unless the environment does; without them it compiles nothing."""
    options = [PRECISE]
    if "CUDA_PATH" not in os.environ and compiler_missing() is None and (found := headers()):
        cudart, cccl = found
        os.environ["CUDA_PATH"] = str(cudart.parent)
        options.append(f"-I{cccl}")
    os.environ.setdefault("TVM_CUDA_NVRTC_EXTRA_OPTS", " ".join(options))


def runtime_library() -> Path:
    """Return where TVM's runtime for CUDA should be."""
    spec = find_spec("tvm")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "lib" / RUNTIME


def load_runtime() -> None:
    """Load TVM's runtime for CUDA, which TVM silently leaves out where CUDA's own is not found.

    Raises
    ------
    Unsupported
        With the loader's message.
    """
    import tvm

    if tvm.runtime.enabled("cuda"):
        return
    try:
        _load_cuda_runtime()
        ctypes.CDLL(str(runtime_library()))
    except OSError as error:
        raise Unsupported(f"TVM's runtime for CUDA does not load: {error}") from None


def _load_cuda_runtime() -> Any:
    """Load CUDA's runtime from where pip has put it; the system's is found without."""
    from cuda import pathfinder

    try:
        return pathfinder.load_nvidia_dynamic_lib("cudart")
    except pathfinder.DynamicLibNotFoundError:
        return None
