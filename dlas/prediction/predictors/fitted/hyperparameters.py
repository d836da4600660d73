"""Search for XGBoost's settings: trees are proposed by TPE, and Hyperband stops those that fall behind.

References
----------
MIRAGE, section 4.3 and Table 2, whose ranges these are; there the two together are BOHB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
import xgboost

from dlas.prediction.predictors.fitted.boosters import OBJECTIVE
from dlas.stack.types import Floats

BUDGETS = (100, 300, 900)
"""Rounds of boosting after which a trial goes on or ends."""
FOLDS = 3
"""Parts of the groups, each held out in turn."""
STARTED = 5
"""Random trials before TPE proposes; each of Hyperband's brackets has its own."""


@dataclass(frozen=True)
class BestSettings:
    """The best settings of a search."""

    settings: dict[str, Any]
    """By XGBoost's names."""
    rounds: int
    error: float
    """Mean absolute error on the groups held out, in the target's unit."""


def search(features: Floats, target: Floats, groups: Sequence[str], trials: int, seed: int) -> BestSettings:
    """Return the settings with the least error on groups that were held out.

    Parameters
    ----------
    features : array [n, columns]
    target : array [n]
    groups : sequence of str, length n
        At least two different ones.
    seed : int
        Of the proposals, the trees and the parts of the groups.
    """
    folds = list(_folds(features, target, groups, seed))

    def tried(trial: optuna.Trial) -> float:
        settings = {**OBJECTIVE, **_proposed(trial), "seed": seed}
        errors = []
        for rounds, error in _errors(folds, settings):
            errors.append((error, rounds))
            trial.set_user_attr("best", min(errors))
            trial.report(error, rounds)
            if trial.should_prune():
                raise optuna.TrialPruned
        return min(errors)[0]

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(n_startup_trials=STARTED, seed=seed),
            pruner=optuna.pruners.HyperbandPruner(BUDGETS[0], BUDGETS[-1], reduction_factor=3),
        )
        study.optimize(tried, n_trials=trials)
    finally:
        optuna.logging.set_verbosity(verbosity)
    best = study.best_trial
    error, rounds = best.user_attrs["best"]
    return BestSettings({**_proposed(best), "seed": seed}, int(rounds), float(error))


def _proposed(trial: optuna.Trial | optuna.trial.FrozenTrial) -> dict[str, Any]:
    """Return a trial's settings."""
    return {
        "max_depth": trial.suggest_int("max_depth", 5, 11),
        "min_child_weight": trial.suggest_int("min_child_weight", 5, 8),
        "subsample": trial.suggest_float("subsample", 0.8, 1),
        "colsample_bytree": trial.suggest_float("colsample_bytree", 0.8, 1),
        "learning_rate": trial.suggest_float("learning_rate", 0.005, 0.1, log=True),
        "reg_alpha": trial.suggest_float("reg_alpha", 1e-4, 1e-2, log=True),
        "reg_lambda": trial.suggest_float("reg_lambda", 1e-4, 1e-2, log=True),
    }


def _folds(
    features: Floats, target: Floats, groups: Sequence[str], seed: int
) -> Iterator[tuple[xgboost.DMatrix, xgboost.DMatrix]]:
    """Yield what to fit and what to try, whole groups held out."""
    names, places = np.unique(np.asarray(groups), return_inverse=True)
    part = np.random.default_rng(seed).permutation(len(names)) % min(FOLDS, len(names))
    for held in range(min(FOLDS, len(names))):
        away = part[places] == held
        yield xgboost.DMatrix(features[~away], target[~away]), xgboost.DMatrix(features[away], target[away])


def _errors(
    folds: Sequence[tuple[xgboost.DMatrix, xgboost.DMatrix]], settings: dict[str, Any]
) -> Iterator[tuple[int, float]]:
    """Yield the rounds and the error over all folds after each budget; trees grow from one to the next."""
    models: list[xgboost.Booster | None] = [None] * len(folds)
    done = 0
    for rounds in BUDGETS:
        apart = []
        for place, (fitted, tried) in enumerate(folds):
            model = xgboost.train(settings, fitted, rounds - done, xgb_model=models[place])
            models[place] = model
            apart.append(np.abs(model.predict(tried) - tried.get_label()))
        done = rounds
        yield rounds, float(np.concatenate(apart).mean())
