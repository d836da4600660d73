"""Clocks of a board: what its server lets a session set, and the functions that a desk calls for it.

They are restored when the desk releases them, and by the guard when the session ends in any other way.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

from dlas.bench.clocks.applied import HeldClocks
from dlas.bench.clocks.finding import find_clocks
from dlas.bench.clocks.holding import hold
from dlas.bench.clocks.nvpmodel import find_power_mode
from dlas.bench.clocks.request import ClockRequest
from dlas.errors import PointError, one_line

HOLD = "dlas.board.hold_clocks"
READ = "dlas.board.read_clocks"
RELEASE = "dlas.board.release_clocks"
THIS_MACHINE = "local"
"""What a sweep on the board itself calls it: both wait for each other."""
NOT_ALLOWED = "the board's server lets no client set clocks; `dlas serve --allow-clocks` does"


class ServedClocks:
    """The clocks that a session holds.

    Parameters
    ----------
    root : Path or None
        The folder that holds sys; None where it may set none.
    """

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._ends = ExitStack()
        self._held: HeldClocks | None = None
        self._told: list[str] = []

    def register(self) -> None:
        """Register the functions in this process, for the session that it serves."""
        import tvm

        for name, function in {HOLD: self.hold, READ: self.read, RELEASE: self.release}.items():
            tvm.register_global_func(name, function, override=True)

    def hold(self, asked: str, on_gpu: bool) -> str:
        """Set clocks; return why not, or an empty text.

        Parameters
        ----------
        asked : str
            A :class:`ClockRequest` as JSON.
        """
        root = self._root
        if root is None:
            return NOT_ALLOWED
        try:
            request = ClockRequest(**json.loads(asked))
            domains = find_clocks(os.sched_getaffinity(0), bool(on_gpu), root)
            mode = find_power_mode(root)
            clocks = hold(request, domains, THIS_MACHINE, self._told.append, root=root, mode=mode)
            self._held = self._ends.enter_context(clocks)
        except (PointError, TypeError, ValueError) as error:
            return one_line(str(error))
        return ""

    def read(self) -> str:
        """Return the clocks that are held, as JSON."""
        return json.dumps(self._held.contents() if self._held else {})

    def release(self) -> str:
        """Restore what was found, and return what there is to tell, as JSON."""
        self._held = None
        self._ends.close()
        told, self._told = self._told, []
        return json.dumps(told)
