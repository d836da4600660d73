"""The interface of a compiler that searches for schedules before it compiles."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlas.stack.algorithm import Algorithm
from dlas.stack.compiler import Compiler
from dlas.stack.hardware import Hardware
from dlas.stack.model import Workspace
from dlas.stack.network import Network


@dataclass(frozen=True)
class Bench:
    """Where a search measures candidates, and where it keeps their times.

    Parameters
    ----------
    hardware : Hardware
        The search has the device to itself.
    records : Path
        A folder that all studies share; nothing in it is ever evicted.
    workspace : Workspace
    """

    hardware: Hardware
    records: Path
    workspace: Workspace


class TuningCompiler(Compiler):
    """A compiler whose builds follow from a search on the device.

    :meth:`tune` runs as a step of its own, alone on the device.  The files that it
    writes lie in the folder of :meth:`compile` when that is called.
    """

    @abstractmethod
    def tune(
        self, network: Network, algorithm: Algorithm, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search, and write what ``compile`` needs into ``folder``; continue a search that was killed.

        Returns
        -------
        dict
            ``trials``, the ``valid`` ones among them, the ``seconds`` that they took when
            they were made, and ``curves``: for each workload its ``layers`` and its
            ``best``, a list of [trials, seconds of search, seconds a call].

        Raises
        ------
        Unsupported
            If nothing can be tuned for this device.
        """
