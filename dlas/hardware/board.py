"""Programs on a board, and what a measurement there asks of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from dlas.errors import Unsupported
from dlas.measuring import on_board
from dlas.measuring.sampling import Instruments
from dlas.remote.address import Address
from dlas.remote.connection import connect, reaching
from dlas.stack import Backend, Images, Layer, Program, Target

if TYPE_CHECKING:
    from tvm.rpc import RPCSession

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Board:
    """A session on a board; it ends when nothing holds this object any more.

    Parameters
    ----------
    address : Address
    session : tvm.rpc.RPCSession
    """

    address: Address
    session: RPCSession

    @classmethod
    def reach(cls, address: Address, threads: int, cores: str) -> Board:
        """Open a session that uses ``threads`` of the board's cores.

        Parameters
        ----------
        address : Address
        threads : int
        cores : str
            As :func:`dlas.measuring.on_board.use_cores` takes it.

        Raises
        ------
        Unreachable
            If the board gives no session.
        Unsupported
            If it has no such cores.
        """
        board = cls(address, connect(address))
        try:
            board.call(on_board.USE_CORES, threads, cores)
        except RuntimeError as error:  # TVM's, with the message of what was raised there
            raise Unsupported(f"{address}: {str(error).strip().splitlines()[-1]}") from None
        return board

    def call(self, name: str, *arguments: Any) -> Any:
        """Call one of the board's own functions."""
        with reaching(self.address):
            return self.session.get_function(name)(*arguments)

    def load(self, compiler: Backend, folder: Path, target: Target) -> BoardProgram:
        """Send a build to the board.

        Raises
        ------
        Unsupported
            If the compiler's programs run on this machine only, or TVM on the board finds no such device.
        Unreachable
            If the board is lost.
        """
        with reaching(self.address):
            if target.on_gpu and not self.session.device(target.kind).exist:
                raise Unsupported(f"TVM on the board finds no device for {target.kind}")
            return BoardProgram(self, compiler.load_on_board(folder, target, self.session))

    def instruments(self, on_gpu: bool) -> Instruments:
        """Return the board's own observers, of a program on its GPU or on its processors."""
        return Instruments(watch=BoardWatch(self, on_gpu))


@dataclass(frozen=True)
class BoardWatch:
    """Observers on a board, in the session's process.

    Parameters
    ----------
    board : Board
    on_gpu : bool
    """

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
