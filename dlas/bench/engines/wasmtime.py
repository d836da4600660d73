"""WebAssembly in wasmtime, in this process: Cranelift compiles a module as a whole when it is loaded."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np

from dlas.bench.engines.process import EngineFailed
from dlas.errors import Unsupported, one_line
from dlas.stack import Array
from dlas.stack.engine import Engine, ModuleTensor, WasmModule, aligned

PAGE = 2**16
"""Bytes that memory grows by."""


class Wasmtime(Engine):
    """Runs a module in this process."""

    def __init__(self) -> None:
        import wasmtime

        self._wasmtime = wasmtime
        self._engine = wasmtime.Engine()
        self._store: Any = None

    @classmethod
    def missing(cls) -> str | None:
        """Return that it is not installed, or None."""
        if importlib.util.find_spec("wasmtime") is None:
            return "wasmtime is not installed: pip install 'dlas[web]'"
        return None

    @classmethod
    def describe(cls) -> dict[str, Any]:
        """Return wasmtime's version."""
        return {"engine": f"wasmtime {importlib.metadata.version('wasmtime')}"}

    def load(self, module: WasmModule, code: Path, parameters: Path) -> None:
        """Compile the module, and copy its parameters into its memory.

        Raises
        ------
        Unsupported
            If wasmtime refuses the module, or the memory that it needs.
        """
        self.close()
        try:
            compiled = self._wasmtime.Module(self._engine, code.read_bytes())
        except self._wasmtime.WasmtimeError as error:
            raise Unsupported(f"wasmtime refuses the module: {one_line(str(error))}") from None
        self._store = self._wasmtime.Store(self._engine)
        exports = self._wasmtime.Instance(self._store, compiled, []).exports(self._store)
        self._memory, self._run, self._call = exports["memory"], exports["run"], exports["call"]
        self._parameters = aligned(exports["__heap_base"].value(self._store))
        self._own = self._parameters + module.parameters_bytes
        missing = self._own + module.memory_bytes - self._memory.data_len(self._store)
        if missing > 0:
            try:
                self._memory.grow(self._store, -(-missing // PAGE))
            except self._wasmtime.WasmtimeError as error:
                raise Unsupported(f"wasmtime gives no {missing:,} bytes: {one_line(str(error))}") from None
        self._memory.write(self._store, parameters.read_bytes(), self._parameters)

    def write(self, tensor: ModuleTensor, array: Array) -> None:
        """Copy an array into the module's memory."""
        data = np.ascontiguousarray(array, tensor.dtype).tobytes()
        self._memory.write(self._store, data, self._own + tensor.offset)

    def read(self, tensor: ModuleTensor) -> Array:
        """Return a copy of an array in the module's memory."""
        start = self._own + tensor.offset
        return tensor.of(self._memory.read(self._store, start, start + tensor.nbytes))

    def run(self, runs: int) -> float:
        """Run so many inferences, and return their seconds together."""
        return self._timed(self._run, runs)

    def call(self, which: int, runs: int) -> float:
        """Run one call of an inference so many times, and return their seconds together."""
        return self._timed(self._call, which, runs)

    def clock_step_s(self) -> float:
        """Return the smallest step of Python's clock in seconds."""
        return time.get_clock_info("perf_counter").resolution

    def bytes_used(self) -> int:
        """Return the size of the module's memory."""
        return int(self._memory.data_len(self._store))

    def close(self) -> None:
        """Free the module and its memory."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _timed(self, function: Any, *arguments: int) -> float:
        begun = time.perf_counter()
        try:
            function(self._store, self._parameters, self._own, *arguments)
        except (self._wasmtime.Trap, self._wasmtime.WasmtimeError) as error:
            raise EngineFailed(f"the module has stopped: {one_line(str(error))}") from None
        return time.perf_counter() - begun
