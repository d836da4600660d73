"""Fit and evaluate a predictor setting by setting, and describe what was fitted."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dlas.errors import InputError
from dlas.prediction.learning import stored
from dlas.prediction.learning.evaluation import Evaluation
from dlas.prediction.learning.features import of_operators
from dlas.prediction.learning.features.devices import FACTS
from dlas.prediction.learning.fitting import Calibration, calibrated, check_enough, cross_fit, fit
from dlas.prediction.learning.gains import TransferGain, gains
from dlas.prediction.learning.metrics import Scores
from dlas.prediction.learning.noise import noise_floor
from dlas.prediction.learning.points import SETTING, Points
from dlas.prediction.learning.splits import Criterion
from dlas.stack import Fitted, Predictor, Samples
from dlas.stack.types import Say
from dlas.sweep.rows.labels import label, number_of
from dlas.sweep.study import parts

THREADS = "threads"
BASELINES = ("mean", "flops", "nearest")
"""Predictors that every table shows, as far as they read what is known of its points."""


@dataclass(frozen=True)
class EvaluationProtocol:
    """What predictors are asked for, and on what they are tried."""

    target: str
    """The column that they predict."""
    criterion: Criterion
    """What is held out."""
    seed: int = 0
    """Of all random numbers."""


@dataclass(frozen=True)
class SettingEvaluation:
    """The rows of one setting, and what predictors say of them."""

    name: str
    """Machine, compiler, ... of the rows."""
    points: Points
    """Each point once."""
    evaluations: dict[str, Evaluation]
    """By the name of the predictor; baselines come last."""
    floor: float | None
    """The noise floor."""
    gains: list[TransferGain] = field(default_factory=list)
    """Where devices were held out in turn, what fitting to several gains over one, of the first predictor."""

    @property
    def first(self) -> Evaluation:
        """The first predictor."""
        return next(iter(self.evaluations.values()))


def evaluate_settings(
    predictors: Mapping[str, Predictor],
    points: Points,
    protocol: EvaluationProtocol,
    say: Say = print,
) -> list[SettingEvaluation]:
    """Return predictors and baselines on what is held out, for each setting with enough rows.

    Where devices are held out, or machines, their instances, numbers of threads, compilers or algorithms,
    the rows of all of them make one setting.  Otherwise predictors of kernels also read, of a setting with
    several threads, the rows of the one with the fewest, if these are as many or more.

    Raises
    ------
    InputError
        If no setting has enough rows, nothing can be held out, or a network would be on both sides.
    """
    target, criterion, seed = protocol.target, protocol.criterion, protocol.seed
    fewest = max(predictor.fewest for predictor in predictors.values())
    check_enough(points, fewest)
    tried = {**predictors, **_baselines(points, target, predictors)}
    found = []
    by_setting = points.settings(criterion.of_settings)
    for measured in by_setting.values():
        own, name = measured.merged(target), describe(measured, criterion.of_settings)
        if not criterion.of_settings:
            own = replace(own, fewer_threads=on_fewest_threads(own, by_setting.values(), target))
        if len(own) < fewest:
            say(f"{name}: {number_of(len(own), 'row')}, at least {fewest} are needed")
            continue
        floor = noise_floor(measured.frame, target)
        evaluations = {
            tried_name: Evaluation(*cross_fit(predictor, own, target, criterion, seed, say))
            for tried_name, predictor in tried.items()
        }
        gained = []
        if criterion.of_settings and criterion.one_by_one:
            first, predictor = next(iter(evaluations.values())), next(iter(tried.values()))
            names = own.frame["model_name"].tolist()
            gained = gains(predictor, first.samples, names, first.tried, seed, say)
        found.append(SettingEvaluation(name, own, evaluations, floor, gained))
    if not found:
        raise InputError(
            f"no setting (machine, instance, threads, task, compiler, algorithm) has {fewest} rows: "
            f"{number_of(len(points), 'row')} in {number_of(len(points.places()), 'setting')}"
        )
    return found


def on_fewest_threads(own: Points, settings: Iterable[Points], target: str) -> Points | None:
    """Return the points, each once, of the setting with the fewest threads that differs in nothing else.

    None where that is the setting itself, has fewer points, or nobody knows the threads.
    """
    key = next(iter(own.settings([THREADS])))
    alike = [each for each in settings if next(iter(each.settings([THREADS]))) == key]
    fewest = min(alike, key=_threads)
    if not _threads(fewest) < _threads(own) or fewest.frame["id"].nunique() < own.frame["id"].nunique():
        return None
    return fewest.merged(target)


def _threads(points: Points) -> float:
    """Return the number of threads of a setting; infinity where nobody knows."""
    threads = points.frame[THREADS].iloc[0]
    return math.inf if pd.isna(threads) else float(threads)


def _baselines(points: Points, target: str, without: Collection[str]) -> dict[str, Predictor]:
    """Return the baselines, without those that are there and those that read what points do not tell."""
    baselines = {name: predictor_of(name, {}) for name in BASELINES if name not in without}
    if points.tell_operators:
        return baselines
    return {name: each for name, each in baselines.items() if not of_operators(each.families(target))}


def fit_settings(
    name: str,
    predictor: Predictor,
    evaluated: Sequence[SettingEvaluation],
    protocol: EvaluationProtocol,
    say: Say = print,
) -> tuple[stored.Record, list[Fitted]]:
    """Return a predictor fitted to all rows of each setting, and its record.

    Parameters
    ----------
    name : str
        The predictor's.
    evaluated : sequence of SettingEvaluation
        What :func:`evaluate_settings` returned for it.
    protocol : EvaluationProtocol
        That of their evaluation.
    """
    target, criterion, seed = protocol.target, protocol.criterion, protocol.seed
    settings, fitted = [], []
    for place, each in enumerate(evaluated):
        samples, tried = each.first.samples, each.first.tried
        if len(tried) == 1:  # of all groups, not of those that were named
            samples, tried = cross_fit(predictor, each.points, target, criterion.in_turn(), seed, say)
        one = fit(predictor, samples, seed, say)
        pooled = criterion.of_settings
        settings.append(_record(str(place), each, samples, one, calibrated(samples, tried), pooled))
        fitted.append(one)
    part = parts.find("predictor", name)
    options = {key: value for key, value in vars(predictor).items() if key in part.options()}
    record = stored.Record(
        part=name,
        options=part.validate(name, options),
        target=target,
        hold_out=str(criterion),
        seed=seed,
        versions=stored.versions(),
        settings=settings,
    )
    return record, fitted


def predictor_of(name: str, options: Mapping[str, Any]) -> Predictor:
    """Return a predictor with validated options."""
    made: Predictor = parts.checked("predictor", name, options)
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


def describe(points: Points, without: Sequence[str] = ()) -> str:
    """Return the setting of points in words, ``AMD EPYC, 2 threads, training, torch_eager``.

    Of columns ``without`` it tells how many values there are.
    """
    first = points.frame.iloc[0]
    words = []
    for column in SETTING:
        if column in without:
            word = column.removesuffix("_id").removesuffix("s")
            if count := points.frame[column].nunique():
                words.append(number_of(count, word))
        elif column == "machine_id":
            words.append(str(first["machine"]))
        elif pd.isna(first[column]):
            continue
        elif column != "threads":
            words.append(str(first[column]))
        else:
            words.append(number_of(int(first[column]), "thread"))
    return ", ".join(words)


def _record(
    folder: str,
    each: SettingEvaluation,
    samples: Samples,
    fitted: Fitted,
    calibration: Calibration,
    pooled: Sequence[str],
) -> stored.SettingRecord:
    """Return what is known of a setting that was fitted, for any value of the columns ``pooled``."""
    frame = each.points.frame
    ranges = zip(samples.features.min(axis=0), samples.features.max(axis=0), strict=True)
    importances = fitted.importances()
    key = next(iter(each.points.settings()))
    return stored.SettingRecord(
        setting=dict(zip(SETTING, key, strict=True)) | dict.fromkeys(pooled, stored.ANY),
        machine=str(frame["machine"].iloc[0]),
        hardware="" if pd.isna(profile := frame["hardware_name"].iloc[0]) else str(profile),
        facts=_facts(each.points),
        columns={
            name: (float(low), float(high)) for name, (low, high) in zip(samples.columns, ranges, strict=True)
        },
        importances=None if importances is None else list(importances),
        batches=(int(frame["batch"].min()), int(frame["batch"].max())),
        rows=sorted(frame["id"]),
        on_fewer_threads=0 if samples.fewer_threads is None else len(samples.fewer_threads),
        groups=sorted(set(samples.groups)),
        half_width=calibration.half_width,
        spread=calibration.spread,
        floor=each.floor,
        tried=each.first.held_out(),
        evaluation=[_evaluation_record(*one) for one in each.evaluations.items()],
        kernels=[stored.KernelRecord(**asdict(kind)) for kind in each.first.by_kernel()],
        folder=folder,
        files={},
    )


def _facts(points: Points) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of each number that is known of the devices of all points."""
    told = points.devices()
    known = [name for name in FACTS if all(name in each for each in told)]
    return {name: (min(each[name] for each in told), max(each[name] for each in told)) for name in known}


def _evaluation_record(name: str, evaluation: Evaluation) -> stored.EvaluationRecord:
    folds = {fold: _score_record(scores) for fold, scores in evaluation.by_fold().items()}
    return stored.EvaluationRecord(name=name, overall=_score_record(evaluation.overall()), by_fold=folds)


def _score_record(scores: Scores) -> stored.ScoreRecord:
    values = asdict(scores)
    return stored.ScoreRecord(**{**values, "within": list(values["within"])})
