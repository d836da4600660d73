"""What a folder of predictors of kernels holds: the kinds of kernels, and which of them have trees."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from dlas.errors import InputError

COSTS = ("macs", "padded_macs", "values", "weights", "count")
"""Columns whose rates make the sum of a kernel's time."""
INDEX = "kernels.json"
"""File that names the kinds of kernels, in the order of their arrays and trees."""
MOST_KINDS = 1000
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class KernelIndex:
    """The kinds of kernels by their places."""

    columns: tuple[str, ...]
    """The kernels' features that were fitted."""
    kinds: tuple[str, ...]
    boosted: Set[int]
    """Places of the kinds whose times trees predict."""
    of_energy: bool
    """Whether there are powers."""
    powered: Set[int] = frozenset()
    """Places of the kinds whose powers trees predict."""
    on_more_threads: bool = False
    """Whether there are trees for what more threads bring."""

    def write(self, folder: Path) -> None:
        """Write the file."""
        told = {
            "columns": self.columns,
            "kinds": self.kinds,
            "boosted": sorted(self.boosted),
            "power": self.of_energy,
            "powered": sorted(self.powered),
            "on_more_threads": self.on_more_threads,
        }
        (folder / INDEX).write_text(json.dumps(told, indent=1))

    @classmethod
    def read(cls, folder: Path) -> KernelIndex:
        """Return what :meth:`write` wrote, which may come from elsewhere.

        Raises
        ------
        InputError
            If the file is missing or damaged.
        """
        path = folder / INDEX
        try:
            if path.stat().st_size > MOST_BYTES:
                raise InputError(f"{path} has over {MOST_BYTES:,} bytes")
            content = json.loads(path.read_bytes())
            columns, names, boosted = content["columns"], content["kinds"], set(content["boosted"])
            # Folders of earlier versions do not say.
            of_energy, powered = content.get("power", False) is True, set(content.get("powered", ()))
            on_more_threads = content.get("on_more_threads", False) is True
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{path} names no kinds of kernels: {error}") from None
        for listed in (columns, names):
            if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
                raise InputError(f"{path} names no kinds of kernels: {listed!r:.80} is no list of names")
        if (
            len(set(names)) < len(names)
            or len(names) > MOST_KINDS
            or not boosted | powered <= set(range(len(names)))
            or not set(COSTS) <= set(columns)
        ):
            raise InputError(f"{path} names no kinds of kernels: names are missing, repeated or too many")
        return cls(tuple(columns), tuple(names), boosted, of_energy, powered, on_more_threads)
