"""TVM programs that an engine of WebAssembly runs."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlas.axes.compilers.programs.contents import CONTENTS, layers_of
from dlas.errors import Unsupported, WrongOutput
from dlas.lowering.webassembly.writing import CODE, PARAMETERS, read_module
from dlas.stack import Images, Layer, Program
from dlas.stack.engine import Engine

STEPS = 100
"""Shortest sample, in steps of the engine's clock."""
COARSE_S = 0.01
"""With steps this long, samples of a hundred would take a second each."""
SETTLE_S, SETTLES_S, LONGEST_S = 0.1, 1.0, 10.0
"""Runs until times settle: in batches so long, for so long at least and at most."""
FASTER = 1.03
"""A batch faster than all before by more than this factor shows that the engine is still compiling."""
QUIET = 3
"""Batches in a row that are no faster, after which the times have settled."""


class WebAssemblyProgram(Program):
    """A program in an engine.

    Engines such as V8 compile a function twice, quickly before its first run and well after many,
    while it runs: times count from where they have settled.

    Parameters
    ----------
    folder : Path
        What :func:`dlas.lowering.webassembly.writing.write_network` wrote.
    engine : Engine
        Its only program is this one.

    Raises
    ------
    OSError, ValueError, KeyError, TypeError
        If a file is missing or damaged.
    Unsupported
        If the engine refuses the module.
    """

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._module, self._engine = read_module(folder), engine
        self._layers: dict[str, list[str]] = json.loads((folder / CONTENTS).read_text())["layers"]
        engine.load(self._module, folder / CODE, folder / PARAMETERS)
        self._given: Images | None = None
        self._least_runs = 0
        """Runs that a sample has at least; 0 before times have settled."""

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``."""

        def run() -> None:
            self._give(images)
            self._engine.run(1)

        return run

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w].

        Raises
        ------
        WrongOutput
            If calls one by one compute anything else than all of them together.
        """
        self._give(images)
        self._engine.run(1)
        output = self._engine.read(self._module.output)
        for which in range(len(self._module.calls)):
            self._engine.call(which, 1)
        apart = self._engine.read(self._module.output)
        if output.tobytes() != apart.tobytes():
            most = float(np.abs(output - apart).max())
            raise WrongOutput(
                f"kernels called one by one compute another output, which differs by {most:.3g}"
            )
        return np.asarray(output, np.float32)

    def timer(self, images: Images) -> Callable[[int], float]:
        """Return a function that tells the seconds of ``n`` inferences by the engine's clock.

        Where so many take less than :data:`STEPS` steps of the clock, they run repeatedly, and
        the mean counts.
        """

        def seconds(runs: int) -> float:
            self._give(images)
            if not self._least_runs:
                self._least_runs = least_runs(self._engine.clock_step_s(), settled(self._engine.run))
            repeats = -(-self._least_runs // runs)
            return self._engine.run(runs * repeats) / repeats

        return seconds

    def layers(self, images: Images, repeats: int) -> list[Layer]:
        """Return the layers that the build names, in order, with median seconds over ``repeats``.

        Where the engine's clock is coarse, a call runs several times in a row, with its inputs in the cache.
        """
        self._give(images)
        step = self._engine.clock_step_s()
        found: list[Layer] = []
        names = layers_of(self._module.calls, self._layers)
        for which, name in enumerate(names):
            runs = 1
            while (once := self._engine.call(which, runs)) < STEPS * step:
                runs *= 2 if once <= 0 else max(2, math.ceil(STEPS * step / once))
            samples = [self._engine.call(which, runs) / runs for _ in range(repeats)]
            found.append({"name": name, "latency_s": statistics.median(samples)})
        return found

    def bytes_used(self) -> int:
        """Return the size of the module's memory."""
        return self._engine.bytes_used()

    def _give(self, images: Images) -> None:
        """Have ``images`` in the module's memory."""
        if self._given is not images:
            self._engine.write(self._module.inputs[0], images)
            self._given = images


def settled(run: Callable[[int], float]) -> float:
    """Run until the engine compiles no more; return the seconds of a run.

    Parameters
    ----------
    run : callable
        Takes a number of runs, and returns their seconds together.
    """
    quickest, quiet, spent, runs = math.inf, 0, 0.0, 1
    while (quiet < QUIET or spent < SETTLES_S) and spent < LONGEST_S:
        together = run(runs)
        spent += together
        seconds = together / runs
        quiet = 0 if seconds * FASTER < quickest else quiet + 1
        quickest = min(quickest, seconds) if seconds else quickest
        runs = max(1, math.ceil(SETTLE_S / seconds)) if seconds else 2 * runs
    return quickest


def least_runs(step_s: float, seconds: float) -> int:
    """Return how many runs of so many seconds make a sample of :data:`STEPS` steps of the clock.

    Raises
    ------
    Unsupported
        If the clock is so coarse that samples would take a second.
    """
    if step_s > COARSE_S:
        raise Unsupported(
            f"the engine's clock has steps of {step_s * 1e3:.0f} ms, too coarse to time inferences"
        )
    return max(1, math.ceil(STEPS * step_s / seconds))
