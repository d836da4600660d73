"""A point with what is known of it: what predictors are fitted to, and what they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlas.networks.operators import Operators
from dlas.stack import Layer
from dlas.sweep.rows.results import Row


@dataclass(frozen=True)
class Example:
    """A point that was measured or only made."""

    row: Row
    """Its parts and its device; its measurements, if there are any."""
    operators: Operators
    """Of its network; empty where they are not known."""
    kernels: Sequence[Layer] = ()
    """What its program computes, with times where it was measured; empty where nobody asked or they are not
    known.
    """
    folder: str = ""
    """Where the row was read from; empty for a point that has no row in a folder."""
