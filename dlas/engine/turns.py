"""Points that take turns on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlas.engine.point_run import Active


@dataclass
class Heat:
    """Points that have their device to themselves: in turns to be measured, or one to be tuned.

    Parameters
    ----------
    members : list of Active
    locks : list of int
        Descriptors to be closed at the end.
    turn_of : Active or None
    """

    members: list[Active]
    locks: list[int]
    turn_of: Active | None = None


def next_heat(group: Sequence[Active], most: int) -> list[Active]:
    """Return the first points of a group, ``most`` of them or a few less.

    A network is not divided, unless it alone has more points: what a kernel is compared
    with on the same weights takes turns with it.
    """
    first = list(group[:most])
    if len(group) == len(first) or group[most].point.compression != first[-1].point.compression:
        return first
    whole = [active for active in first if active.point.compression != first[-1].point.compression]
    return whole or first
