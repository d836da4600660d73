"""A predictor's card: what it was fitted to, how wrong it was, and where it should not be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dlas.errors import InputError
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.metrics import WITHIN, relative_errors
from dlas.prediction.learning.splits import Criterion
from dlas.prediction.learning.stored import KernelRecord, ScoreRecord, SettingRecord, StoredPredictor

BANDS = 3
"""Into how many bands of equally many rows measured values are divided."""
FEWEST_OF_BAND = 5
"""Rows in a band below which its mean error says little."""
WRONG = 1.5
"""Multiple of the mean error from which on a band, a group or a kind of kernel is told as a weak place."""
LEAST_SHARE = 0.01
"""Share of all time below which a kind of kernel matters little."""
MOST_GROUPS = 3
"""Groups that are named as the worst."""
CLOSE = WITHIN.index(0.1)
"""Place of the share within 10 % in scores."""


@dataclass(frozen=True)
class SizeBand:
    """The rows that were held out whose measured values lie between two bounds."""

    low: float
    high: float
    """In the target's unit."""
    rows: int
    mape: float
    """Mean absolute error relative to the measured value."""


@dataclass(frozen=True)
class SettingCard:
    """What is known of a predictor in one setting."""

    setting: SettingRecord
    hold_out: Criterion
    bands: list[SizeBand]
    """By size, the smallest first; one where rows are few."""

    @classmethod
    def of(cls, setting: SettingRecord, hold_out: str) -> SettingCard:
        """Return the card of a setting of a predictor that was tried as ``hold_out`` says."""
        return cls(setting, Criterion.parse(hold_out), bands(setting))

    @property
    def scores(self) -> ScoreRecord:
        """How wrong it was on what was held out."""
        return self.setting.evaluation[0].overall

    @property
    def close(self) -> float:
        """Share of the rows held out whose relative error is at most 10 %."""
        return self.scores.within[CLOSE]

    @property
    def groups(self) -> dict[str, float]:
        """Mean error of each group that was held out, the worst first; empty where parts of groups were."""
        folds = self.setting.evaluation[0].by_fold
        if not self.hold_out.one_by_one or len(folds) < 2:
            return {}
        return dict(sorted(((name, each.mape) for name, each in folds.items()), key=lambda each: -each[1]))

    @property
    def baselines(self) -> dict[str, float]:
        """Mean error of the baselines on the same rows."""
        return {each.name: each.overall.mape for each in self.setting.evaluation[1:]}

    @property
    def measured(self) -> tuple[float, float]:
        """The least and the largest measured value of rows that were held out."""
        return self.bands[0].low, self.bands[-1].high

    @property
    def weak_bands(self) -> list[SizeBand]:
        """Bands whose error is well above the mean."""
        return [band for band in self.bands if band.mape > WRONG * self.scores.mape]

    @property
    def weak_groups(self) -> dict[str, float]:
        """The groups whose errors are farthest above the mean."""
        wrong = [(name, mape) for name, mape in self.groups.items() if mape > WRONG * self.scores.mape]
        return dict(wrong[:MOST_GROUPS])

    @property
    def weak_kernels(self) -> list[KernelRecord]:
        """Kinds of kernels that take time and whose errors are well above those of all kernels."""
        kernels = self.setting.kernels
        count = sum(each.count for each in kernels)
        mean = sum(each.count * each.mape for each in kernels) / count if count else 0.0
        return [each for each in kernels if each.share >= LEAST_SHARE and each.mape > WRONG * mean]

    @property
    def better_baselines(self) -> dict[str, float]:
        """Baselines that were less wrong."""
        return {name: mape for name, mape in self.baselines.items() if mape < self.scores.mape}

    @property
    def is_overconfident(self) -> bool:
        """Whether its intervals held fewer rows than they promise, by more than twice the standard error."""
        scores = self.scores
        if scores.coverage is None:
            return False
        return scores.coverage + 2 * (scores.coverage_error or 0.0) < LEVEL


def card_of(stored: StoredPredictor, number: str | None = None) -> list[SettingCard]:
    """Return the card of each setting that a predictor was fitted to.

    Parameters
    ----------
    number : str, optional
        Of one setting, counted from 0 in the order of the card.

    Raises
    ------
    InputError
        If there is no such setting.
    """
    settings = {setting.folder: setting for setting in stored.record.settings}
    if number is not None and number not in settings:
        raise InputError(f"no setting {number!r} of this predictor; there are: {', '.join(settings)}")
    chosen = settings.values() if number is None else [settings[number]]
    return [SettingCard.of(setting, stored.record.hold_out) for setting in chosen]


def bands(setting: SettingRecord) -> list[SizeBand]:
    """Return the errors of the rows that were held out by size, in bands of equally many rows."""
    predicted, measured = np.array(list(setting.tried.values())).reshape(-1, 2).T
    order = np.argsort(measured, kind="stable")
    predicted, measured = predicted[order], measured[order]
    errors = relative_errors(predicted, measured)
    number = max(min(BANDS, len(measured) // FEWEST_OF_BAND), 1)
    cuts = np.linspace(0, len(measured), number + 1).astype(int)
    return [
        SizeBand(
            float(measured[first]),
            float(measured[last - 1]),
            int(last - first),
            float(errors[first:last].mean()),
        )
        for first, last in pairwise(cuts)
    ]
