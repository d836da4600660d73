"""How much each point computes: the multiply-adds of its network before compression.

What compression changes is an effect of its own.  Networks tell them that were only made, or else rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.space import Architecture, Space
from dlas.prediction.adaptive.share.trends import CHANNELS, centred
from dlas.stack import INFERENCE
from dlas.stack.types import Floats
from dlas.sweep.engine.session import Session
from dlas.sweep.rows.files import holds_rows
from dlas.sweep.rows.labels import number_of
from dlas.sweep.rows.results import Row, read_rows
from dlas.sweep.study import parts
from dlas.sweep.study.point import NONE, Choice, Point
from dlas.sweep.study.study import Study

EXPONENT, SURE = 1.8, 0.5
"""Multiply-adds usually fall with channels to this power, since most layers read and write fewer; and how
much that counts, as a sum of squares of logarithms."""


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


def work_of(space: Space, known: Mapping[int, PointOutcome]) -> Floats:
    """Return the logarithm of each point's multiply-adds less their mean, 0 where they are not known; [n].

    Parameters
    ----------
    known : mapping of int to PointOutcome
        What became of points that were measured; it tells those that the space does not.
    """
    told = np.log(space.macs)
    return centred(np.where(np.isnan(told), _of_rows(space, known), told))


def _of_rows(space: Space, known: Mapping[int, PointOutcome]) -> Floats:
    """Return the logarithm of each point's multiply-adds as measured points have them, NaN of other models.

    Where only networks with fewer channels were measured, the dense one's follow from the exponent with which
    multiply-adds fall with channels.
    """
    told = [place for place, each in known.items() if each.macs]
    macs = np.log([known[place].macs or np.nan for place in told])
    channels = next((trend.values for trend in space.trends if trend.name == CHANNELS), np.zeros(len(space)))
    left, groups = channels[told], space.architectures[told]
    within = [groups == group for group in np.unique(groups)]
    across = np.concatenate([left[own] - left[own].mean() for own in within] or [left])
    along = np.concatenate([macs[own] - macs[own].mean() for own in within] or [macs])
    exponent = (across @ along + SURE * EXPONENT) / (across @ across + SURE)
    work = np.full(len(space), np.nan)
    for own in within:
        alike = space.architectures == groups[own][0]
        work[alike] = (macs[own] - exponent * left[own]).mean()
    return work


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
