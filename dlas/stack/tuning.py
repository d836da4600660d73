"""What a compiler adds to the stack's interface where it searches before it compiles."""

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
    """Where candidates are measured: a device of one's own, and what was measured before.

    Parameters
    ----------
    hardware : Hardware
        Nobody else uses it meanwhile.
    records : Path
        A folder that all studies share and that nothing is evicted from.
    workspace : Workspace
    """

    hardware: Hardware
    records: Path
    workspace: Workspace


class TuningCompiler(Compiler):
    """A compiler whose builds follow from a search on the device.

    Its :meth:`tune` runs as a step of its own, alone on the device.  What that
    writes into its folder lies in the folder of :meth:`compile` when that is called.
    """

    @abstractmethod
    def tune(
        self, network: Network, algorithm: Algorithm | None, batch: int, bench: Bench, folder: Path
    ) -> dict[str, Any]:
        """Search, and write what ``compile`` needs into ``folder``; a search that was killed goes on.

        Returns
        -------
        dict
            ``trials`` and the ``valid`` ones among them, ``seconds`` that they took when
            they were made, and ``curves``: for each workload its ``layers`` and its
            ``best``, a list of [trials, seconds of search, seconds a call].

        Raises
        ------
        Unsupported
            If nothing can be tuned for this device.
        """
