"""What parts of every axis have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

PART_AXES = ("dataset", "model", "compression", "algorithm", "compiler", "hardware")
"""The six layers, from the problem down to the machine (DLAS paper, section 2.2)."""


class Part:
    """What parts of every axis have in common."""

    def verify(self) -> None:
        """Check quickly, before anything starts, the external files that the options name.

        Raises
        ------
        MissingData, ValueError, OSError
            The message says what is wrong with which file.
        """
        for part in self.delegates():
            part.verify()

    def files(self) -> list[Path]:
        """Return the external files that affect the part: by default those that its options name."""
        options = [os.path.expanduser(value) for value in vars(self).values() if isinstance(value, str)]
        return [Path(option) for option in options if os.path.isfile(option)]

    def imports(self) -> list[str]:
        """Return the slow modules that the part imports only when it runs.

        A sweep imports them once for all its steps, when the first step needs them.
        """
        return [name for part in self.delegates() for name in part.imports()]

    def delegates(self) -> Sequence[Part]:
        """Return the parts that this one delegates to; their code and files count as its own."""
        return ()
