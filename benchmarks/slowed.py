"""TVM with work that nobody asked for inside its kernels, for a comparison of two runs to find."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from tvm import s_tir, tirx

from dlas.axes.compilers.hand import Hand
from dlas.axes.compilers.programs.tvm import KernelScheduler
from dlas.errors import InputError
from dlas.lowering.kernels.kernel import Kernel
from dlas.stack import Layer, ScheduleChoice, Target

SEED = 0x2545F4914F6CDD1D
"""What the work begins with."""
NEVER = 12_345
"""What the work does not end with; the compiler cannot know that."""


@dataclass(frozen=True)
class Slowed(Hand):
    """``hand``, with more work in some kernels.

    Behind a kernel's own loops a chain of xorshifts runs, of which each needs the one before, on the thread
    that called the kernel.  It changes no result.
    """

    work: str
    """A JSON file with the steps of each kernel's chain, by what :func:`name_of` calls it."""

    def verify(self) -> None:
        """Read the file.

        Raises
        ------
        InputError
            If it is not an object with whole numbers.
        """
        super().verify()
        self._steps()

    def files(self) -> list[Path]:
        """Return the file with the work."""
        return [*super().files(), Path(self.work)]

    def scheduler(self, folder: Path) -> KernelScheduler:
        """Return the best guess for a kernel, with its work."""
        guess, steps = super().scheduler(folder), self._steps()

        def slowed(kernel: Kernel, target: Target) -> tuple[tirx.PrimFunc, ScheduleChoice]:
            function, choice = guess(kernel, target)
            more = steps.get(name_of(kernel.describe()), 0)
            return (with_work(function, more) if more else function), choice

        return slowed

    def _steps(self) -> dict[str, int]:
        try:
            steps = json.loads(Path(self.work).read_text())
        except ValueError as error:
            raise InputError(f"{self.work!r} is no JSON file: {error}") from None
        if not isinstance(steps, dict) or not all(
            type(count) is int and count >= 0 for count in steps.values()
        ):
            raise InputError(f"{self.work!r} does not hold an object with whole numbers from 0 on")
        return steps


def name_of(layer: Layer) -> str:
    """Return a name for what a kernel computes, the same in a row's layer as before it is scheduled."""
    known = [layer.get(name) for name in ("kernel", *"nchwkrs", "strides", "padding", "dilation", "groups")]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def with_work(function: tirx.PrimFunc, steps: int) -> tirx.PrimFunc:
    """Return a scheduled PrimFunc that shifts a number ``steps`` times behind its own loops."""
    root = function.body.block
    output = function.params[-1]
    state = tirx.decl_buffer((1,), "uint64", "work")
    first = [tirx.const(0, "int32")]
    at = [tirx.const(0, "int32")] * len(output.shape)

    def wide(value: int) -> tirx.PrimExpr:
        return tirx.const(value, "uint64")

    def shifts() -> tirx.Stmt:
        x = tirx.BufferLoad(state, first)
        for shift, amount in ((tirx.shift_left, 13), (tirx.shift_right, 7), (tirx.shift_left, 17)):
            x = tirx.bitwise_xor(x, shift(x, wide(amount)))
        return tirx.BufferStore(state, x, first)

    kept = tirx.BufferLoad(output, at)
    ended = tirx.Select(tirx.BufferLoad(state, first) == wide(NEVER), tirx.const(0, output.dtype), kept)
    step = tirx.Var("step", "int32")
    work = [
        tirx.BufferStore(state, wide(SEED), first),
        tirx.For(step, tirx.const(0, "int32"), tirx.const(steps, "int32"), tirx.ForKind.SERIAL, shifts()),
        tirx.BufferStore(output, ended, at),
    ]
    block = s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        tirx.SeqStmt([root.body, *work]),
        root.init,
        [*root.alloc_buffers, state],
        root.match_buffers,
        root.annotations,
    )
    return function.with_body(s_tir.SBlockRealize([], tirx.const(True, "bool"), block))
