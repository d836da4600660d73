"""JSON whose numbers are finite, as its standard has them; Python reads and writes others, too."""

from __future__ import annotations

import json
import math
from typing import Any


def loads(text: str | bytes) -> Any:
    """Return the content of a text.

    Raises
    ------
    ValueError
        If it is no JSON, or holds ``NaN``, ``Infinity`` or a number as large as ``1e999``.
    RecursionError
        If it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse, parse_float=_finite)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no finite number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text[:40])
