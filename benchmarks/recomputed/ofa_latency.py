"""``experiments/ofa-latency``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

from benchmarks.recomputed import evaluated
from benchmarks.recomputed.kept import EXPERIMENTS, lines, points, slow
from benchmarks.recomputed.markdown import Value, numbers
from benchmarks.subnet_kept import Outcome, read_kept, seconds
from benchmarks.subnet_winners import Margin, margins, wilson
from dlas.prediction.learning.curves import curves_of_settings
from dlas.prediction.learning.fitting import calibrated, fit
from dlas.prediction.learning.points import Points
from dlas.prediction.learning.settings import EvaluationProtocol, SettingEvaluation, predictor_of
from dlas.prediction.learning.splits import Criterion
from dlas.stack import Predictor
from dlas.sweep.rows.results import Row

ROWS, AGAIN, DEVICES = "ofa-latency/rows", "ofa-latency/again", "ofa-latency/devices"
WINNERS = "ofa-latency/winners"
TARGET = "latency_s"
BOUNDS = (0.0025, 0.0032, 0.0041, 0.0051, 0.0066)
"""Of the searches whose winners were measured, in their order."""
PREDICTED = ("`additive` of stages", "`flops`")
"""Predictors that are fitted again: perceptrons take minutes."""


def _additive() -> Predictor:
    return predictor_of("additive", {"costs": "stage"})


@cache
def _setting(target: str, hold_out: str, *folders: str) -> list[SettingEvaluation]:
    return evaluated.evaluated({"additive": _additive()}, evaluated.read(target, *folders), target, hold_out)


@slow
def errors(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the noise floor, and the errors of the sum and of the line over multiply-adds."""
    found: dict[str, Value] = {}
    for target, columns in (
        ("latency_s", ("`latency_s`, RMSE / mean", "mean error")),
        ("latency_min_s", ("`latency_min_s`, RMSE / mean", "mean error (2)")),
    ):
        if cells["predictor"] == "noise floor":
            found[columns[1]] = floor(target)
        elif cells["predictor"] in PREDICTED:
            (own,) = _setting(target, "model/10", ROWS, AGAIN)
            score = own.evaluations[cells["predictor"].split("`")[1]].overall()
            found |= dict(zip(columns, (100 * score.rmse_of_mean, 100 * score.mape), strict=True))
    return found


@cache
def _curve() -> Mapping[int, float]:
    protocol = EvaluationProtocol(TARGET, Criterion.parse("model/5"))
    rows, counts = evaluated.read(TARGET, ROWS), (50, 100, 200, 400, 700)
    (found,) = curves_of_settings({"additive": _additive()}, rows, protocol, counts, lambda line: None)
    return {count: 100 * score.rmse_of_mean for count, score in found.scores["additive"].items()}


@slow
def by_rows(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the errors of the sum by the number of rows."""
    if cells["predictor"] not in PREDICTED:
        return {}
    return {column: _curve()[int(numbers(column)[0])] for column in list(cells)[1:]}


@slow
def spent(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return how long measuring took."""
    what = cells["what (Figure 6)"]
    if "samples alone" in what:
        return {"seconds": sum(sum(row.latency_s) * (row.calls_per_sample or 1) for row in lines(ROWS))}
    if "96 blocks" in what:
        return {"seconds": _worked(lines("ofa-latency/blocks")) / 3}
    return {"seconds": _worked(lines(ROWS)[: 50 if what.startswith("50") else None])}


def _worked(rows: tuple[Row, ...]) -> float:
    return sum(sum(cast(dict[str, float], row.seconds).values()) for row in rows)


@cache
def _outcomes() -> list[Outcome]:
    """Return what a predictor fitted anew says and what was measured of winners, each after its reference."""
    (own,) = _setting(TARGET, "model/10", ROWS)
    samples, part = own.first.samples, _additive()
    width = calibrated(samples, own.first.tried).half_width
    assert width is not None
    known: Points = evaluated.read(TARGET, WINNERS)
    asked = known.samples(part, TARGET, [""] * len(known))
    fitted = fit(part, samples, say=lambda line: None)
    estimated = dict(zip(asked.ids, fitted.predict(asked), strict=True))
    before = {row.id: seconds(row, TARGET) for row in lines(ROWS)}
    measured = lines(WINNERS)
    outcomes = []
    for place, (reference, winner) in enumerate(zip(measured[::2], measured[1::2], strict=True)):
        estimate, now = float(estimated[winner.id]), seconds(winner, TARGET)
        scaled = now * before[reference.id] / seconds(reference, TARGET)
        bound = BOUNDS[place * len(BOUNDS) * 2 // len(measured)]
        outcomes.append(Outcome(bound, estimate, estimate * math.exp(width), now, scaled, bool(winner.noisy)))
    return outcomes


def winners(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return who keeps its bound with a margin, and the score that it costs.

    It needs ``searches.json`` beside the rows of the winners, which ``benchmarks.subnet_winners`` writes.
    """
    searches, outcomes = read_kept(EXPERIMENTS / WINNERS)
    found = margins(outcomes, [(each.value, each.score) for each in searches])
    label = cells["margin between estimate and bound"]
    line = _with_margin(found, "intervals" if "intervals" in label else numbers(label)[0])
    low, high = wilson(line.kept)
    return {
        "keep their bound": [sum(line.kept), len(line.kept)],
        "": [100 * sum(line.kept) / len(line.kept), 100 * low, 100 * high],
        "score given up": line.given_up,
    }


def keep(margin: str) -> float:
    """Return how many winners keep their bound with a margin in percent, or with that of ``intervals``."""
    return sum(_with_margin(margins(_outcomes(), [(1.0, 0.0)]), margin).kept)


def _with_margin(found: Sequence[Margin], margin: str) -> Margin:
    """Return the line of a margin in percent, or of that of ``intervals``."""
    (own,) = (
        each
        for each in found
        if (each.own if margin == "intervals" else math.isclose(100 * each.margin, float(margin)))
    )
    return own


@slow
def devices(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the errors of the sum and of the line over multiply-adds on another device."""
    name = cells["device"]
    compiler = "onnxruntime" if name.startswith("ONNX") else name.split("`")[1]
    asked = compiler, "channels last" in name, int(numbers(name)[-1])
    (own,) = (each for each in _setting(TARGET, "model/5", DEVICES) if _device(each) == asked)
    return {
        f"`{predictor}`": 100 * own.evaluations[predictor].overall().rmse_of_mean
        for predictor in ("additive", "flops")
    }


def _device(setting: SettingEvaluation) -> tuple[str, bool, int]:
    first = setting.points.frame.iloc[0]
    return str(first["compiler_name"]), "channels_last" in str(first["compiler"]), int(first["threads"])


def floor(target: str) -> float:
    """Return the least mean error that repeats allow, in percent."""
    return evaluated.floor(evaluated.read(target, ROWS, AGAIN), target)


def differs(target: str) -> float:
    """Return by how much repeats differ, in percent."""
    return evaluated.differs(evaluated.read(target, ROWS, AGAIN), target)


def longer() -> float:
    """Return by how many percent latencies were longer when they were measured again, their sums compared."""
    first, second = (points(folder).set_index("id")[TARGET] for folder in (ROWS, AGAIN))
    return 100 * float(second.sum() / first.loc[second.index].sum() - 1)
