"""A library that TVM compiled, with its packed parameters."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FILES = ("library.so", "parameters.safetensors", "program.json")
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    **{f"{kind.upper()}{8 * size}": f"<{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)},
    "BOOL": "?",
}
"""NumPy's names of the types of a safetensors file."""
LARGEST_HEADER = 2**24
MAIN = "main"
"""The function of a library that holds one."""


class TvmDeployment:
    """A loaded library.

    Parameters
    ----------
    folder : Path
    threads : int
        Of this process: TVM reads the number before its first inference and not again.
    options : dict
        ``function``: the one to run by default, of a library that holds several.
    """

    def __init__(self, folder: Path, threads: int, options: dict[str, Any]) -> None:
        os.environ.setdefault("TVM_NUM_THREADS", str(threads))
        # TVM would bind the calling thread to one processor, and what starts later with it.
        os.environ.setdefault("TVM_BIND_THREADS", "0")
        import tvm
        from tvm import relax

        library, parameters, program = (folder / name for name in FILES)
        arrays = read_tensors(parameters)
        self._tensor = lambda array: tvm.runtime.tensor(np.ascontiguousarray(array), tvm.cpu())
        contents = json.loads(program.read_text())
        self._default = options.get("function", MAIN)
        functions = contents.get("functions") or {MAIN: contents["parameters"]}
        tensors = {name: self._tensor(arrays[name]) for name in {n for f in functions.values() for n in f}}
        self._parameters = {name: [tensors[each] for each in functions[name]] for name in functions}
        self._machine = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
        self._inputs: dict[tuple[int, ...], Any] = {}
        self._entries: dict[str, Callable[[], Any]] = {}
        self._alone = threading.Lock()  # inferences share memory

    def bind(self, images: Array) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""
        given = self._tensor(images)
        self._machine.save_function(self._default, "bound", given, *self._parameters[self._default])
        once: Callable[[], Any] = self._machine["bound"]
        return once

    def run(self, images: Array) -> Array:
        """Return the outputs for ``images``."""
        function = self._default
        with self._alone:
            result = self._machine[function](self._tensor(images), *self._parameters[function])
            outputs: Array = result.numpy()
        return outputs

    def entry(self, function: str, shape: tuple[int, ...]) -> Callable[[Array], Array]:
        """Return what runs one of the library's functions on images of one shape.

        Functions of one shape share an input, and each is bound to it once, so that changing from one to
        another copies nothing.  Threads may call them: inferences run one after another.
        """
        with self._alone:
            if shape not in self._inputs:
                self._inputs[shape] = self._tensor(np.zeros(shape, np.float32))
            given = self._inputs[shape]
            if function not in self._entries:
                bound = f"bound_{function}"
                self._machine.save_function(function, bound, given, *self._parameters[function])
                self._entries[function] = self._machine[bound]
            once = self._entries[function]

        def run(images: Array) -> Array:
            with self._alone:
                given.copyfrom(images)
                outputs: Array = once().numpy()
            return outputs

        return run


Program = TvmDeployment
"""What ``run.py`` and :func:`dlas.load` open."""


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file: the length of its header, the header in JSON, the values.

    These few lines spare a deployed program a package, and its build a second format of parameters.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    content = np.memmap(path, np.uint8, mode="r")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(len(content) - 8, LARGEST_HEADER):
        raise ValueError(f"{path} is no safetensors file: a header of {length:,} bytes")
    header = json.loads(content[8 : 8 + length].tobytes())
    values = content[8 + length :]
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            arrays[name] = values[start:end].view(TYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays
