"""Predictors, and what is held out of their fits, as users name them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlas.errors import InputError
from dlas.prediction.learning import stored
from dlas.prediction.learning.fitting import default_criterion
from dlas.prediction.learning.points import Points
from dlas.prediction.learning.splits import Criterion
from dlas.stack import Predictor
from dlas.sweep.rows.labels import label
from dlas.sweep.study.point import Choice


def predictor_of(part: str, options: Mapping[str, Any]) -> Predictor:
    """Return a predictor with validated options."""
    made: Predictor = Choice.checked("predictor", part, options).make("predictor")
    made.verify()
    return made


def named_predictor(part: str | Mapping[str, Any]) -> tuple[str, Predictor]:
    """Return what tables call a predictor, and it: a part, one with options, or that of a folder.

    Raises
    ------
    InputError
        If there is none.
    """
    if isinstance(part, str):
        return part, stored.read(Path(part)).part if Path(part).is_dir() else predictor_of(part, {})
    options = dict(part)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise InputError(
            f"predictor {options!r} has no name; expected a table such as "
            "{name = 'additive', costs = 'stage'}"
        )
    return label(part), predictor_of(name, options)


def criterion_of(text: str | None, points: Points) -> Criterion:
    """Return what is held out: what a text says, or by default models where there are several."""
    return Criterion.parse(text) if text is not None else default_criterion(points)
