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
from dlas.sweep.study.shards import Shard
from dlas.sweep.study.study import Study

MEASURED = (MACHINE, "status")
"""Names that only rows have."""


def select_points(study: Study, where: Sequence[str], shard: str | None = None) -> list[Point]:
    """Return the points that all filters keep, as :func:`dlas.sweep.rows.frame.select` does with rows.

    Parameters
    ----------
    shard : str, optional
        The part of the study that they are in, as :meth:`dlas.sweep.study.shards.Shard.parse` takes it.

    Raises
    ------
    InputError
        If a filter is malformed, or keeps no point, or they keep none together; or there is no such shard.
    """
    points, filters = list(study.points()), [parse(text) for text in where]
    own = points if shard is None else Shard.parse(shard).points(study)
    if not filters:
        return own
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
    ids = {point.id for point in own}
    chosen = [
        point for point, keep in zip(points, kept(filters, columns), strict=True) if keep and point.id in ids
    ]
    if not chosen:
        whole = "study" if shard is None else f"shard {shard}"
        raise InputError(f"no point of the {whole} matches all of {', '.join(map(repr, where))}")
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
