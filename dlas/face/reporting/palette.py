"""Colours of parts, the same in every figure of every report.

A part's colour follows from its name: the name's hash chooses one of twenty
colours; if that is taken, the part gets the next free one.  Parts that ship with
the tool choose first, so that other parts do not change their colours.  Variants
of a part, such as the levels of a technique, are a ramp within its hue: from a pale colour to a
dark and strong one.  All are readable on white and on the dark background.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable

from dlas.analysis.matching import natural
from dlas.analysis.roles import DENSE
from dlas.sweep.study import parts

HUES = (
    (0.58, 0.17, 255),
    (0.66, 0.16, 52),
    (0.60, 0.15, 150),
    (0.56, 0.19, 355),
    (0.54, 0.20, 297),
    (0.64, 0.11, 200),
    (0.64, 0.13, 92),
    (0.55, 0.19, 27),
    (0.57, 0.14, 125),
    (0.66, 0.20, 328),
)
"""Lightness, chroma and hue in OKLCH; neighbours on the wheel differ in lightness too."""
SALT = 10739
"""Salt of the hash; with this number the colours of the parts that ship differ well."""
SECOND = 0.09
"""Difference in lightness between the first ten colours and the second ten of the same hues."""
MIDDLE = 0.6
NEUTRAL = (0.58, 0.02, 255)
"""Grey, for the dense network."""
PALE, DARK = (0.29, 0.06, -20), (0.135, 0.2, 18)
"""Ends of a ramp: luminance (as of WCAG), chroma, and difference in hue.  A luminance between 0.126 and
0.3 has a contrast of 3 with white and with the dark background."""


def _second(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    return (lightness + SECOND if lightness < MIDDLE else lightness - SECOND), chroma * 0.8, hue


SLOTS = (*HUES, *(_second(*hue) for hue in HUES))


def colours(axis: str, labels: Iterable[str]) -> dict[str, str]:
    """Return the colour of each label of an axis.

    Parameters
    ----------
    axis : str
        One of the six layers.
    labels : iterable of str
        Parts with their options, ``weight_pruning(level=0.8)``.

    Returns
    -------
    dict of str to str
        ``#rrggbb``, in natural order of the labels.
    """
    ordered = sorted(set(labels), key=natural)
    slots = _slots(axis, {_name(label) for label in ordered})
    counts, seen = Counter(map(_name, ordered)), Counter[str]()
    by_label = {}
    for label in ordered:
        name = _name(label)
        slot = NEUTRAL if name == DENSE else SLOTS[slots[name]]
        several = counts[name] > 1
        by_label[label] = _ramp(slot[2], seen[name] / (counts[name] - 1)) if several else rgb(*slot)
        seen[name] += 1
    return by_label


def _ramp(hue: float, place: float) -> str:
    """Return the colour at a place of a hue's ramp, 0 at its pale end and 1 at its dark end."""
    luminance, chroma, turned = (a + place * (b - a) for a, b in zip(PALE, DARK, strict=True))
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        bright = luminance_of(rgb(middle, chroma, hue + turned)) > luminance
        low, high = (low, middle) if bright else (middle, high)
    return rgb(low, chroma, hue + turned)


def luminance_of(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` as WCAG 2 defines it, 0 for black and 1 for white."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def rgb(lightness: float, chroma: float, hue: float) -> str:
    """Return a colour of OKLCH as ``#rrggbb``, its channels clipped to the range of sRGB.

    References
    ----------
    B. Ottosson, A perceptual color space for image processing, 2020.
    """
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(1.0, max(0.0, value)))):02x}" for value in linear)


def _gamma(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def _name(label: str) -> str:
    return label.partition("(")[0]


def _slots(axis: str, names: set[str]) -> dict[str, int]:
    """Return each name's colour, all different as long as there are enough."""
    shipped = parts.names(axis) if axis in ("algorithm", "compression", "compiler") else []
    slots: dict[str, int] = {}
    for name in [*shipped, *sorted(names - set(shipped))]:
        if name == DENSE:
            continue
        wanted = int(hashlib.sha256(f"{SALT}{name}".encode()).hexdigest(), 16) % len(SLOTS)
        taken = set(slots.values()) if len(slots) < len(SLOTS) else set()
        slots[name] = next(
            slot for step in range(len(SLOTS)) if (slot := (wanted + step) % len(SLOTS)) not in taken
        )
    return slots
