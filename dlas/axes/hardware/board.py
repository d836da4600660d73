"""Programs on a board, and what a measurement there asks of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from dlas.bench.clocks import served
from dlas.bench.clocks.request import ClockRequest
from dlas.bench.measuring import on_board
from dlas.bench.measuring.sampling import Instruments
from dlas.bench.remote.board import Board
from dlas.bench.remote.connection import reaching
from dlas.errors import Unreachable, Unsupported
from dlas.stack import Backend, Images, Layer, Program, ReadClocks, Target
from dlas.stack.types import Say

Given = ParamSpec("Given")
Result = TypeVar("Result")


def load(board: Board, compiler: Backend, folder: Path, target: Target) -> BoardProgram:
    """Send a build to a board.

    Raises
    ------
    Unsupported
        If the compiler's programs run on this machine only, or TVM on the board finds no such device.
    Unreachable
        If the board is lost.
    """
    board.device(target)
    with reaching(board.address):
        return BoardProgram(board, compiler.load_on_board(folder, target, board.session))


def instruments(board: Board, on_gpu: bool) -> Instruments:
    """Return the board's own observers, of a program on its GPU or on its processors."""
    return Instruments(watch=BoardWatch(board, on_gpu))


@contextmanager
def hold_clocks(board: Board, request: ClockRequest, on_gpu: bool, say: Say) -> Iterator[ReadClocks]:
    """Set a board's clocks, and restore what was found; where the board is lost, its own guard does.

    Raises
    ------
    Unsupported
        If the board or its server refuses.
    Unreachable
        If the board is lost.
    """
    if refusal := board.call(served.HOLD, json.dumps(asdict(request)), on_gpu):
        raise Unsupported(str(refusal))
    try:
        yield lambda: json.loads(board.call(served.READ))
    finally:
        with suppress(Unreachable):
            for line in json.loads(board.call(served.RELEASE)):
                say(line)


@dataclass(frozen=True)
class BoardWatch:
    """Observers on a board, in the session's process."""

    board: Board
    on_gpu: bool

    def before(self) -> None:
        """Begin a slice."""
        self.board.call(on_board.BEFORE, self.on_gpu)

    def after(self) -> dict[str, Any]:
        """End the slice, and return what each observer saw, by its name."""
        seen: dict[str, Any] = json.loads(self.board.call(on_board.AFTER, self.on_gpu))
        return seen

    def close(self) -> None:
        """Do nothing: what watches on the board ends with its session."""


class BoardProgram(Program):
    """A program on a board, whose calls say so where the board is lost.

    Parameters
    ----------
    board : Board
    program : Program
        Runs in the board's session.
    """

    def __init__(self, board: Board, program: Program) -> None:
        self.board, self._program = board, program

    def bind(self, images: Images) -> Callable[[], Any]:
        """Return a function that runs one inference on ``images``, which are on the board already."""
        return self._reaching(self._reaching(self._program.bind)(images))

    def timer(self, images: Images) -> Callable[[int], float] | None:
        """Return a function that tells the seconds of ``n`` inferences by the board's clock."""
        timer = self._reaching(self._program.timer)(images)
        return None if timer is None else self._reaching(timer)

    def run(self, images: Images) -> npt.NDArray[np.float32]:
        """Return the outputs [n, classes] for ``images`` [n, c, h, w]."""
        return self._reaching(self._program.run)(images)

    def layers(self, images: Images, repeats: int) -> list[Layer] | None:
        """Return the layers with their median seconds on the board."""
        return self._reaching(self._program.layers)(images, repeats)

    def _reaching(self, function: Callable[Given, Result]) -> Callable[Given, Result]:
        """Return a function that raises :class:`~dlas.errors.Unreachable` where the board is lost."""

        def call(*given: Given.args, **named: Given.kwargs) -> Result:
            with reaching(self.board.address):
                return function(*given, **named)

        return call
