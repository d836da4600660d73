"""Some of a study's points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlas.errors import InputError, listed, unknown
from dlas.stack import PART_AXES
from dlas.sweep.rows.columns import MACHINE
from dlas.sweep.rows.filters import Values, kept, parse
from dlas.sweep.rows.labels import label, options
from dlas.sweep.study.point import Point
from dlas.sweep.study.study import Study

MEASURED = (MACHINE, "status")
"""Names that only rows have."""


def select_points(study: Study, where: Sequence[str]) -> list[Point]:
    """Return the points that all filters keep, as :func:`dlas.sweep.rows.frame.select` does with rows.

    Raises
    ------
    InputError
        If a filter is malformed, or keeps no point, or they keep none together.
    """
    points, filters = list(study.points()), [parse(text) for text in where]
    if not filters:
        return points
    facts = [_facts(study, point) for point in points]
    known = {name for values in facts for name in values}
    columns: dict[str, list[Values]] = {}
    for name in dict.fromkeys(name for chosen in filters for name in chosen.names):
        if name in MEASURED:
            raise InputError(
                f"`where=`: points that have not run have no {name}; there are: {listed(sorted(known))}"
            )
        if name not in known:
            raise unknown("option in `where=`", name, known)
        columns[name] = [values.get(name, ()) for values in facts]
    chosen = [point for point, keep in zip(points, kept(filters, columns), strict=True) if keep]
    if not chosen:
        raise InputError(f"no point of the study matches all of {', '.join(map(repr, where))}")
    return chosen


def _facts(study: Study, point: Point) -> dict[str, Values]:
    """Return what each name in a filter stands for in a point."""
    content = point.content()
    facts: dict[str, Values] = {name: (getattr(point, name),) for name in ("batch", "task", "seed")}
    facts["study"] = (study.name,)
    for axis in PART_AXES:
        facts[axis] = (label(content[axis]), content[axis]["name"])
        values: dict[str, Any] = options(content[axis])
        facts |= {f"{axis}.{name}": (value,) for name, value in values.items()}
    return facts
