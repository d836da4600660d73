"""Engines of WebAssembly as what runs the contract of algorithms."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dlas.lowering.webassembly.writing import CODE, PARAMETERS, write_network
from dlas.stack import Array, Target
from dlas.stack.engine import Engine, WasmModule
from dlas.testing.algorithms import Run


def loaded(module: WasmModule, folder: Path, engine: Engine) -> Engine:
    """Return an engine with what was written into ``folder``."""
    engine.load(module, folder / CODE, folder / PARAMETERS)
    return engine


def runs_in(engine: Engine) -> Run:
    """Return what runs modules in an engine, one after the other, as ``check_algorithm`` asks for.

    What it returns raises AssertionError if a module's kernels, called one by one, or run again, give
    different bits.
    """

    def run(module: Any, arguments: Sequence[Array], target: Target) -> Array:
        with tempfile.TemporaryDirectory() as scratch:
            written = write_network(module, list(arguments[1:]), target, Path(scratch))
            loaded(written, Path(scratch), engine)
        calls = range(len(written.calls))
        outputs = []
        for each in (lambda: engine.run(1), lambda: [engine.call(which, 1) for which in calls]) * 2:
            engine.write(written.inputs[0], arguments[0])
            engine.write(written.output, np.full(written.output.shape, np.nan, written.output.dtype))
            each()
            outputs.append(engine.read(written.output))
        assert len({output.tobytes() for output in outputs}) == 1, "one build gives several results"
        return outputs[0]

    return run
