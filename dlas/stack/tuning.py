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
    """Where a search measures candidates, and where it stores their times."""

    hardware: Hardware
    """The search has exclusive use of the device."""
    records: Path
    """A folder that all studies share and that is never evicted."""
    workspace: Workspace


class TuningCompiler(Compiler):
    """A compiler whose builds follow from a search on the device.

    :meth:`tune` runs as a step of its own, alone on the device.  Its files are in
    the folder of :meth:`compile` when that is called.
    """

    @abstractmethod
    def tune(
        self, network: Network, algorithm: Algorithm, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search, and write the result for ``compile`` into ``folder``; resume a search that was killed.

        Returns
        -------
        dict
            ``trials``, the number of ``valid`` ones, the ``seconds`` that they took
            originally, and ``curves``: for each workload its ``layers`` and its
            ``best``, a list of [trials, seconds of search, seconds a call].

        Raises
        ------
        Unsupported
            If nothing can be tuned for this device.
        """
