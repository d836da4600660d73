"""What is said while a predictor for a device is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlas.prediction.adaptive.device.budget import FIRST
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.metrics import Scores
from dlas.prediction.learning.points import Points
from dlas.stack.types import Floats
from dlas.sweep.rows.labels import duration, number_of, points


def as_drawn(count: int) -> str:
    """Return the line before points that are measured as they are drawn."""
    return f"measuring {points(count)} as they are drawn"


def standing(
    read: Points, known: int, errors: Sequence[float], floor: float | None, left_s: float, reason: str
) -> str:
    """Return the line that says how far a predictor is.

    Parameters
    ----------
    read : Points
        All measurements, with what was left out.
    known : int
        Different points among them.
    errors : sequence of float
        Of each round so far, on the networks that were measured as they were drawn, while they are held out.
    floor : float or None
        The noise floor.
    left_s : float
        Seconds that are left of the minutes.
    reason : str
        Why no more are measured; empty where more are.
    """
    without = ", ".join(f"{count} {why}" for why, count in read.left_out.items())
    pieces = [
        f"round {len(errors)}: {points(known)}" + (f" (left out: {without})" if without else ""),
        f"{errors[-1]:.1%} off on the first {FIRST} networks while they are held out",
        *([f"noise floor {floor:.1%}"] if floor is not None else []),
        f"{duration(max(0, round(left_s)))} left",
    ]
    return ", ".join(pieces) + (f"; no more points: {reason}" if reason else "")


def with_more_threads(count: int, threads: int) -> str:
    """Return the line before points that are measured on more threads."""
    return f"measuring {points(count)} again on {number_of(threads, 'thread')}"


def chosen(disagreement: Floats, others: Floats, seconds: Floats) -> str:
    """Return the line that says which candidates are measured next.

    Parameters
    ----------
    disagreement : array [chosen]
        Of the committee on those that are.
    others : array [others]
        On those that are not.
    seconds : array [chosen]
        How long they are expected to take.
    """
    apart = f", on the others by {others.mean():.1%}" if len(others) else ""
    return (
        f"  next: {len(disagreement)} of {len(disagreement) + len(others)} candidates, on which predictors "
        f"disagree most for the seconds that they take: by {disagreement.mean():.1%}{apart}; "
        f"about {duration(float(seconds.mean()))} each"
    )


def none_left(count: int, unplanned: Mapping[str, int]) -> str:
    """Return the line that says why there is nothing more to measure.

    Parameters
    ----------
    count : int
        Points that were drawn and have no row; the kernels of none of them are known.
    unplanned : mapping of str to int
        Numbers of points whose kernels are not known, by reason.
    """
    if not count:
        return "no more points: no others can be drawn"
    reasons = "; ".join(f"{points(number)}: {reason}" for reason, number in unplanned.items())
    return f"no more points: the kernels of {points(count)} cannot be told ({reasons})"


def held_out(scores: Scores, setting: str = "") -> str:
    """Return the line that says how wrong the predictor is on the networks that were held out of fits.

    Parameters
    ----------
    setting : str
        Which of several settings it is of.
    """
    covered = "" if scores.coverage is None else f", {scores.coverage:.0%} within their {LEVEL:.0%} interval"
    return f"  {f'{setting}: ' if setting else ''}{scores.mape:.1%} off on networks held out{covered}"


def recalibrated(before: float, now: float, networks: int) -> str:
    """Return the line that says how wide intervals are with the networks that were never seen.

    Parameters
    ----------
    before, now : float
        Half of the width in the middle, in logarithms.
    """
    by = number_of(networks, "network")
    return f"  {LEVEL:.0%} intervals {now / before:.2f} times as wide, by how far {by} never seen were off"
