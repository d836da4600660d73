"""Sessions on boards: the board's own functions, its device, and libraries that are sent there."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from dlas.bench.measuring import on_board
from dlas.bench.remote.address import Address
from dlas.bench.remote.connection import connect, reaching
from dlas.errors import Unsupported
from dlas.stack import Hardware, Target

if TYPE_CHECKING:
    import tvm
    from tvm.rpc import RPCSession


@dataclass(frozen=True)
class Board:
    """A session on a board; it ends when nothing holds this object any more."""

    address: Address
    session: RPCSession

    @classmethod
    def reach(cls, address: Address, threads: int, cores: str) -> Board:
        """Open a session that uses ``threads`` of the board's cores.

        Parameters
        ----------
        cores : str
            As :func:`dlas.bench.measuring.on_board.use_cores` takes it.

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

    def check(self) -> None:
        """Have an answer of the session.

        Raises
        ------
        Unreachable
            If it has ended, or the board is lost.
        """
        with reaching(self.address):
            self.session.get_function(on_board.USE_CORES)

    def device(self, target: Target) -> tvm.runtime.Device:
        """Return the board's device for a target.

        Raises
        ------
        Unsupported
            If TVM on the board finds none.
        Unreachable
            If the board is lost.
        """
        with reaching(self.address):
            device = self.session.device("cpu" if target.on_processors else target.kind)
            if target.on_gpu and not device.exist:
                raise Unsupported(f"TVM on the board finds no device for {target.kind}")
            return device

    def load_library(self, path: Path) -> tvm.runtime.Module:
        """Send a library to the board and return it loaded there; the file does not stay.

        Raises
        ------
        Unreachable
            If the board is lost.
        """
        name = f"{uuid4().hex}{path.suffix}"  # the system takes a library for one that was called the same
        with reaching(self.address):
            self.session.upload(str(path), name)
            loaded = self.session.load_module(name)
            self.session.remove(name)
            return loaded


class Remote(Hardware):
    """A device on a board, which sessions lead to."""

    @property
    @abstractmethod
    def address(self) -> Address:
        """Where the board is reached.

        Raises
        ------
        Unreachable
            If this machine has no token for it.
        """

    @abstractmethod
    def reach(self) -> Board:
        """Open a session that uses the device's cores.

        Raises
        ------
        Unsupported
            If the device cannot be used, or the board has no such cores.
        Unreachable
            If the board does not answer.
        """
