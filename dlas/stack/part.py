"""What parts of every axis have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from dlas.errors import MissingPackage

PART_AXES = ("dataset", "model", "compression", "algorithm", "compiler", "hardware")
"""The six layers, from the problem down to the machine (DLAS paper, section 2.2)."""


class Part:
    """What parts of every axis have in common."""

    def verify(self) -> None:
        """Check quickly, before anything starts, the packages it needs and the files that its options name.

        Raises
        ------
        MissingPackage, MissingData, ValueError, OSError
            The message says what is missing, or what is wrong with which file.
        """
        for name in self.packages():
            if not _installed(name):
                raise MissingPackage(
                    f"the package {name} is not installed; pip install 'dlas[{name}]', "
                    f"or in a checkout pip install -c constraints.txt -e '.[{name}]'"
                )
        for part in self.delegates():
            part.verify()

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a value at random for each option that can be drawn: by default for none.

        A study leaves an option to this with the value ``"drawn"``.  The values follow from ``rng`` alone.
        """
        return {}

    @classmethod
    def drawn_with(cls, given: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        """Return a value at random for each option that can be drawn, beside options that are given.

        By default as :meth:`drawn`.  A value for a given option replaces it: one that says what to draw from
        is no part of what was drawn.
        """
        return {name: value for name, value in cls.drawn(rng).items() if name not in given}

    @classmethod
    def mutated(
        cls, drawn: Mapping[str, Any], given: Mapping[str, Any], rate: float, rng: np.random.Generator
    ) -> Mapping[str, Any]:
        """Return values that were drawn, changed a little: by default each is drawn anew at a rate.

        Parameters
        ----------
        drawn : mapping
            By option.
        given : mapping
            The options beside them, such as what to draw from.
        rate : float
            How probable a change of each single choice is.
        """
        fresh = cls.drawn_with(given, rng)
        return {name: fresh[name] if rng.random() < rate else value for name, value in drawn.items()}

    @classmethod
    def crossed(
        cls,
        one: Mapping[str, Any],
        other: Mapping[str, Any],
        given: Mapping[str, Any],
        rng: np.random.Generator,
    ) -> Mapping[str, Any]:
        """Return values between two that were drawn: by default each is that of one of them."""
        return {name: (one, other)[int(rng.integers(2))][name] for name in one}

    def files(self) -> list[Path]:
        """Return the external files that affect the part: by default those that its options name."""
        options = [os.path.expanduser(value) for value in vars(self).values() if isinstance(value, str)]
        return [Path(option) for option in options if os.path.isfile(option)]

    def imports(self) -> list[str]:
        """Return the slow modules that the part imports only when it runs.

        A sweep imports them once for all its steps, when the first step needs them.
        """
        return [name for part in self.delegates() for name in part.imports()]

    def packages(self) -> Sequence[str]:
        """Return the optional packages that the part needs, each an extra of this project of that name."""
        return [name for part in self.delegates() for name in part.packages()]

    def delegates(self) -> Sequence[Part]:
        """Return the parts that this one delegates to; their code and files count as its own."""
        return ()


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
