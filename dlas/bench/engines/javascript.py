"""Engines that run ``host.js``: what is asked of them, whichever way the messages go."""

from __future__ import annotations

import base64
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from dlas.bench.engines.process import EngineFailed
from dlas.errors import Unsupported
from dlas.stack import Array
from dlas.stack.engine import Engine, ModuleTensor, WasmModule

HOST = Path(__file__).with_name("host.js")
PIECE = 12 * 2**20
"""Bytes that are sent at a time, a multiple of three: base64 makes 16 MiB of them."""


class JavaScriptEngine(Engine):
    """Sends messages to ``host.js`` in an engine of JavaScript."""

    @abstractmethod
    def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to one of the messages of ``host.js``.

        Raises
        ------
        EngineFailed
            If the engine raises an error, or has ended.
        """

    def load(self, module: WasmModule, code: Path, parameters: Path) -> None:
        """Compile the module there, and send its parameters.

        Raises
        ------
        Unsupported
            If the engine has no vectors, or refuses the module.
        """
        features = self.ask("features")
        if not features["simd"]:
            raise Unsupported(f"{self.describe()['engine']} runs no WebAssembly with vectors (SIMD)")
        try:
            self.ask("load", code=_text(code.read_bytes()), contents=module.content())
        except EngineFailed as error:
            if "CompileError" not in str(error):
                raise
            hint = (
                ""
                if features["relaxed_simd"]
                else "; it has no relaxed SIMD, which relaxed_simd = false avoids"
            )
            raise Unsupported(f"{self.describe()['engine']} refuses the module: {error}{hint}") from None
        with parameters.open("rb") as weights:
            offset = 0
            while piece := weights.read(PIECE):
                self.ask("setParameters", offset=offset, data=_text(piece))
                offset += len(piece)

    def write(self, tensor: ModuleTensor, array: Array) -> None:
        """Copy an array into the module's memory."""
        data = np.ascontiguousarray(array, tensor.dtype).tobytes()
        for start in range(0, len(data), PIECE):
            self.ask("write", offset=tensor.offset + start, data=_text(data[start : start + PIECE]))

    def read(self, tensor: ModuleTensor) -> Array:
        """Return a copy of an array in the module's memory."""
        size = tensor.nbytes
        pieces = [
            base64.b64decode(self.ask("read", offset=tensor.offset + start, size=min(PIECE, size - start)))
            for start in range(0, size, PIECE)
        ]
        return tensor.of(b"".join(pieces))

    def run(self, runs: int) -> float:
        """Run so many inferences, and return their seconds together by the engine's clock."""
        return float(self.ask("run", runs=runs))

    def call(self, which: int, runs: int) -> float:
        """Run one call of an inference so many times, and return their seconds together."""
        return float(self.ask("call", which=which, runs=runs))

    def clock_step_s(self) -> float:
        """Return the smallest step of the engine's clock in seconds."""
        return float(self.ask("clockStep"))

    def bytes_used(self) -> int:
        """Return the size of the module's memory."""
        return int(self.ask("bytesUsed"))


def value_of(answer: dict[str, Any]) -> Any:
    """Return the value of an answer.

    Raises
    ------
    EngineFailed
        If it is an error.
    """
    if "error" in answer:
        raise EngineFailed(str(answer["error"]))
    return answer["value"]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
