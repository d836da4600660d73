"""The multiply-adds of networks before compression: of rows, or of networks that are made to know them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dlas.prediction.adaptive.share.space import Architecture
from dlas.stack import INFERENCE
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.point import NONE, Choice, Point
from dlas.sweep.study.study import Study


def macs_of(
    study: Study, points: Sequence[Point], folder: Path, session: Session
) -> dict[Architecture, float]:
    """Return the multiply-adds of each model on its dataset, which is made for that, but not trained.

    What rows of a folder tell is not made again. One that cannot be made is missing, and so are all where
    there is but one, since nothing follows from that.

    Raises
    ------
    Unfinished, KeyboardInterrupt
        If not all were made.
    """
    made = {(point.dataset, point.model): _made_only(point) for point in points}
    if len(made) < 2:
        return {}
    found = macs_of_rows(read_rows(folder) if holds_rows(folder) else ())
    asked = {point.id: point for key, point in made.items() if key not in found}
    if asked:
        networks = number_of(len(asked), "network")
        session.display.say(f"making {networks}, untrained, to know the multiply-adds")
        rows = session.part.make(study, [*asked.values()], until="network", workspace="explore").rows
        told = {row.id: row.macs for row in rows}
        found |= {key: float(macs) for key, point in made.items() if (macs := told.get(point.id))}
    return found


def macs_of_rows(rows: Iterable[Row]) -> dict[Architecture, float]:
    """Return the multiply-adds by dataset and model that rows without compression tell."""
    dense = (row for row in rows if row.macs and Choice.of(row.compression) == NONE)
    return {(Choice.of(row.dataset), Choice.of(row.model)): float(row.macs or 0) for row in dense}


def _made_only(point: Point) -> Point:
    """Return a point with the same network, neither trained nor compressed."""
    options = dict(point.model.options)
    if "recipe" in parts.find("model", point.model.name).options():
        options = {name: value for name, value in options.items() if name != "epochs"} | {"recipe": "none"}
    model = Choice.checked("model", point.model.name, options)
    return replace(point, model=model, compression=NONE, task=INFERENCE)
