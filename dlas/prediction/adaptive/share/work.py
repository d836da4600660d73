"""How much each point computes: the multiply-adds of its network before compression.

What compression changes is an effect of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlas.prediction.adaptive.share.outcomes import PointOutcome
from dlas.prediction.adaptive.share.space import Space
from dlas.prediction.adaptive.share.trends import CHANNELS, centred
from dlas.stack.types import Floats

EXPONENT, SURE = 1.8, 0.5
"""Multiply-adds usually fall with channels to this power, since most layers read and write fewer; and how
much that counts, as a sum of squares of logarithms."""


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
