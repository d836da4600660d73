"""Reasons of points without a result, told once for all that differ in a number alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

FACTOR = re.compile(r"(?<=differ by a factor of )[\d.e+]+$")
"""The number in which the reasons of unstable points differ."""


def parted(reason: str) -> tuple[str, float | None]:
    """Return a reason without the factor at its end, and the factor; None where there is none."""
    found = FACTOR.search(reason)
    return (reason[: found.start()], float(found[0])) if found else (reason, None)


def joined(reason: str, factors: Iterable[float]) -> str:
    """Return a reason with its factor, or with the least and the largest of several: ``1.4 to 120``."""
    ordered = [f"{factor:g}" for factor in sorted(factors)]
    return reason + " to ".join(dict.fromkeys([*ordered[:1], *ordered[-1:]]))


def alike(reasons: Iterable[str]) -> dict[str, str]:
    """Return, by each reason, what is told of all that differ from it in their factor alone."""
    factors = defaultdict[str, set[float]](set)
    parts = {reason: parted(reason) for reason in reasons}
    for reason, factor in parts.values():
        factors[reason].update(() if factor is None else (factor,))
    return {given: joined(reason, factors[reason]) for given, (reason, _) in parts.items()}
