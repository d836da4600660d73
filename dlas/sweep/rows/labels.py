"""Labels of parts, and numbers formatted with units, for tables and pages alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MISSING = "–"  # noqa: RUF001 - a dash that is not a minus
PREFIXES = ("", "k", "M", "G", "T", "P", "E")
PARTLY = "†"
"""Mark of a time in which the algorithm computes a part of the convolutions only."""
PARTLY_MEANS = (
    f"{PARTLY}N%: the algorithm computes N % of the convolutions' multiply-adds; "
    "others compute the layers that it declines"
)
MOST_CHARACTERS = 160
"""A reason longer than this is shortened; ``dlas show`` prints it whole."""
MOST_OF_A_VALUE = 100
"""The same for one part among others on a line."""
ID_CHARACTERS = 8


def short_id(row_id: str) -> str:
    """Return the beginning of a row's id, by which ``dlas show`` finds it."""
    return row_id[:ID_CHARACTERS]


def label(content: object) -> str:
    """Return a short label for a part of a row, or for what it has on another axis.

    Parameters
    ----------
    content : mapping, or a plain value
        ``{"name": ..., option: value, ...}`` or ``{"name": ..., "chain": [...]}``; a batch size.

    Returns
    -------
    str
        ``weight_pruning(level=0.8)``; the techniques of a chain are joined by ``+``.
    """
    if not isinstance(content, Mapping):
        return str(content)
    if content.get("chain"):
        return "+".join(map(label, content["chain"]))
    options = ", ".join(
        f"{key}={value}" for key, value in sorted(content.items()) if key not in ("name", "chain")
    )
    return f"{content.get('name')}({options})" if options else str(content.get("name"))


def options(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part's options by name; those of a chain by ``<technique>.<option>``.

    Where a chain holds a technique twice, the second is ``<technique>_2``.
    """
    if not content.get("chain"):
        return {key: value for key, value in content.items() if key not in ("name", "chain")}
    by_name: dict[str, Any] = {}
    seen: Counter[str] = Counter()
    for link in content["chain"]:
        name = str(link.get("name"))
        seen[name] += 1
        prefix = name if seen[name] == 1 else f"{name}_{seen[name]}"
        by_name |= {f"{prefix}.{key}": value for key, value in options(link).items()}
    return by_name


def flat(mapping: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested mapping that are not None, by their keys joined by dots."""
    for key, value in mapping.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            yield from flat(value, name)
        elif value is not None:
            yield name, value


def milliseconds(seconds: float, digits: int = 4) -> str:
    """Return seconds as milliseconds of four digits, without the unit."""
    return f"{seconds * 1e3:.{decimals(seconds * 1e3, digits)}f}"


def interval_ms(median: float, low: float, high: float) -> str:
    """Return ``12.34 [12.31, 12.40]``: milliseconds, all three with the median's decimals.

    Where the bounds are NaN, since nobody knows them, it is the median alone.
    """
    if math.isnan(low):
        return milliseconds(median)
    places = decimals(median * 1e3, 4)
    return f"{median * 1e3:.{places}f} [{low * 1e3:.{places}f}, {high * 1e3:.{places}f}]"


def factor(value: float) -> str:
    """Return a ratio of three digits, at least one decimal below 100: ``1.83``, ``12.3``, ``0.046``."""
    return f"{value:.{decimals(value, 3)}f}"


def times_as_fast(speed: float) -> str:
    """Return a speed relative to another: ``1.83 times as fast``; above 1 is faster."""
    return f"{factor(speed)} times as fast"


def coverage_mark(share: float | None) -> str:
    """Return `` †33%`` beside a time where the algorithm computes that share only, nothing where all.

    Parameters
    ----------
    share : float or None
        Of the convolutions' multiply-adds; None or NaN for a runtime with kernels of its own.
    """
    if share is None or not share < 1:
        return ""
    percent = min(99, round(100 * share))
    return f" {PARTLY}{percent if percent else '<1'}%"


def decimals(value: float, digits: int) -> int:
    """Return the number of decimals with which ``value`` has so many digits, at most six."""
    if value <= 0 or not math.isfinite(value):
        return digits - 1
    return min(6, max(0, digits - 1 - math.floor(math.log10(value))))


def amount(value: float, unit: str = "") -> str:
    """Return an amount with an SI prefix: ``12.3 MB``, ``1.21 G``, ``640 B``."""
    if not math.isfinite(value):
        return MISSING
    power = 0
    # 999.5 would be written 1000: it is the next prefix's 1.00.
    while abs(value) >= 999.5 and power < len(PREFIXES) - 1:
        value, power = value / 1000, power + 1
    digits = f"{value:.0f}" if power == 0 and value == int(value) else f"{value:.3g}"
    return f"{digits} {PREFIXES[power]}{unit}".rstrip()


UNITS = {"s": ("ms", 1e3), "bytes": ("MB", 1e-6), "j": ("mJ", 1e3), "hz": ("MHz", 1e-6)}
"""Unit and factor in which tables and figures show a column, by the suffix of its name."""


def shown_in(column: str) -> tuple[str, str, float]:
    """Return a column's name in words, the unit that it is shown in, and the factor to that unit.

    ``latency_s`` is ``latency`` in ``ms``; a column without a unit is shown as it is.
    """
    stem, _, suffix = column.rpartition("_")
    if suffix not in UNITS or not stem:
        return column.replace("_", " "), "", 1.0
    return stem.replace("_", " "), *UNITS[suffix]


def duration(seconds: float) -> str:
    """Return ``0.42 s``, ``3 min 05 s`` or ``2 h 07 min``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text on one line, cut to ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def number_of(count: int, noun: str) -> str:
    """Return ``1 row`` or ``1,234 rows``."""
    return f"{count:,} {noun}" + ("s" if count != 1 else "")


def points(count: int) -> str:
    """Return ``1 point`` or ``1,234 points``."""
    return number_of(count, "point")


def having_rows(count: int) -> str:
    """Return ``has its row`` of one point, ``have their row`` of others."""
    return "has its row" if count == 1 else "have their row"


def rows(count: int) -> str:
    """Return ``1 row`` or ``1,234 rows``."""
    return number_of(count, "row")


def convolution(layer: Mapping[str, Any]) -> str:
    """Return ``64x32x32 > 128, 3x3 / 2``: input, filters, kernel, stride, groups."""
    if any(layer.get(letter) is None for letter in "chwkrs"):
        return ""
    text = "{c}x{h}x{w} > {k}, {r}x{s}".format(**layer)
    strides = layer.get("strides") or (1, 1)
    if max(strides) > 1:
        text += f" / {max(strides)}"
    return text + (f", {layer['groups']} groups" if layer.get("groups", 1) > 1 else "")
