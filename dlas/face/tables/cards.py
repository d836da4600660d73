"""A predictor's card in words: what it was fitted to, how wrong it is, where not to trust it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dlas.face.tables.columns import between, names, numbers, percent, table_of
from dlas.face.tables.table import Table
from dlas.prediction.learning.cards import SettingCard
from dlas.prediction.learning.intervals import LEVEL
from dlas.prediction.learning.stored import ANY, Record, SettingRecord
from dlas.sweep.rows.labels import MISSING, listed, number_of, rows, shown_in

MOST_KERNELS = 5
"""Kinds of kernels whose errors are told."""
MOST_ENDS = 2
"""Groups that are named as the least and as the most wrong."""


def setting_name(setting: SettingRecord) -> str:
    """Return a setting in words: ``AMD EPYC, 2 threads, inference, onnxruntime, any instance``."""
    words = [setting.machine]
    for key, value in setting.setting.items():
        if value == ANY:
            words.append(f"any {key.removesuffix('_id')}")
        elif key == "threads" and value.isdigit():
            words.append(number_of(int(value), "thread"))
        elif value and key != "machine_id":
            words.append(value)
    return ", ".join(words)


def heading(record: Record) -> str:
    """Return what a predictor is: ``boosted_kernels (trees=100) predicts latency``."""
    options = ", ".join(f"{name}={value}" for name, value in record.options.items())
    return f"{record.part}{f' ({options})' if options else ''} predicts {shown_in(record.target)[0]}"


def libraries(record: Record) -> str:
    """Return what a predictor was fitted with."""
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items() if version)
    return f"{versions}; seed {record.seed}"


def facts(card: SettingCard, target: str) -> dict[str, str]:
    """Return what is told of a predictor in one setting, by what it is about.

    Parameters
    ----------
    card : SettingCard
        Of the setting.
    target : str
        The column that the predictor predicts.
    """
    return dict(_facts(card, target))


def _facts(card: SettingCard, target: str) -> Iterator[tuple[str, str]]:
    setting, scores = card.setting, card.scores
    least, most = setting.batches
    batches = f"batch {least}" if least == most else f"batches {least} to {most}"
    beside = f" and {setting.on_fewer_threads:,} on fewer threads" if setting.on_fewer_threads else ""
    yield "fitted to", f"{rows(len(setting.rows))}{beside}, {batches}, {len(setting.columns)} features"
    groups = number_of(len(setting.groups), "group")
    close = f"{card.close:.0%} of {rows(scores.rows)} within 10 %"
    yield "how wrong", f"{percent(scores.mape)} in the mean, {close}; held out: {card.hold_out} ({groups})"
    yield "intervals", _intervals(card)
    if baselines := card.baselines:
        yield "baselines", ", ".join(f"{name} {percent(mape)}" for name, mape in baselines.items())
    yield (
        "noise floor",
        percent(setting.floor) if setting.floor is not None else "no point was measured twice",
    )
    if len(card.bands) > 1:
        told = [f"{_span(band.low, band.high, target)}: {percent(band.mape)}" for band in card.bands]
        yield "by size", "; ".join(told)
    if errors := list(card.groups.items()):
        yield f"by {card.hold_out.column}", _ends(errors)
    if kernels := setting.kernels:
        shown = [
            f"{each.kind} {percent(each.mape)} ({each.share:.0%} of the time)"
            for each in kernels[:MOST_KERNELS]
        ]
        yield "by kernel", ", ".join(shown)
    yield "do not trust", "; ".join(doubts(card, target))


def doubts(card: SettingCard, target: str) -> list[str]:
    """Return where a predictor should not be trusted, the gravest first."""
    _, unit, factor = shown_in(target)
    found = []
    if better := card.better_baselines:
        found.append(f"it at all: less wrong {'is' if len(better) == 1 else 'are'} {listed(list(better))}")
    if card.setting.half_width is None:
        found.append("one number alone: too few groups were held out for an interval")
    elif card.is_overconfident:
        found.append(f"intervals: {percent(card.scores.coverage)} of rows lie in those of {LEVEL:.0%}")
    if wrong := card.weak_groups:
        found.append(", ".join(f"{name} ({percent(mape)})" for name, mape in wrong.items()))
    if kernels := card.weak_kernels:
        found.append(f"kernels of {listed([f'{each.kind} ({percent(each.mape)})' for each in kernels])}")
    found += [f"{_span(band.low, band.high, target)} ({percent(band.mape)})" for band in card.weak_bands]
    low, high = card.measured
    beyond = f"below {factor * low:.4g} or above {factor * high:.4g} {unit}".rstrip()
    found.append(f"what lies {beyond}, or has features beyond those fitted, which `doubt` tells")
    return found


def settings(cards: Sequence[SettingCard], target: str) -> Table:
    """Return a line for each of several settings."""
    return table_of(
        [
            names("number", [card.setting.folder for card in cards]),
            names("setting", [setting_name(card.setting) for card in cards]),
            numbers("rows", [f"{len(card.setting.rows):,}" for card in cards]),
            numbers("measured", [_span(*card.measured, target) for card in cards]),
            numbers("mean error", [percent(card.scores.mape) for card in cards]),
            numbers("within 10 %", [f"{card.close:.0%}" for card in cards]),
            numbers("interval", [_width(card.setting.half_width) for card in cards]),
            numbers("covered", [percent(card.scores.coverage) for card in cards]),
        ],
        "settings",
    )


def _span(low: float, high: float, target: str) -> str:
    """Return two values of the target with its unit: ``1.2 to 9.1 ms``."""
    _, unit, factor = shown_in(target)
    return f"{between(factor * low, factor * high)} {unit}".rstrip()


def _intervals(card: SettingCard) -> str:
    """Return how wide the intervals are, and how many rows lay in them."""
    if card.setting.half_width is None:
        return "none"
    told = f"{LEVEL:.0%}: {_width(card.setting.half_width)}"
    if card.setting.spread is not None:
        told += " for the network in the middle, narrower where many kernels share the time"
    if card.setting.tried_after:
        told += f", by {number_of(card.setting.tried_after, 'network')} measured after the fit"
    if card.scores.coverage is None:
        return told
    error = "" if card.scores.coverage_error is None else f" ± {percent(card.scores.coverage_error)}"
    return f"{told}; of rows held out {percent(card.scores.coverage)}{error} lay in theirs"


def _width(half_width: float | None) -> str:
    """Return an interval's bounds relative to a prediction: ``-21% to +27%``."""
    if half_width is None:
        return MISSING
    return f"{math.exp(-half_width) - 1:+.0%} to {math.exp(half_width) - 1:+.0%}"


def _ends(errors: Sequence[tuple[str, float]]) -> str:
    """Return the least and the most wrong of groups, all of them where they are few."""
    told = [f"{name} {percent(mape)}" for name, mape in reversed(errors)]
    if len(told) <= 2 * MOST_ENDS:
        return ", ".join(told)
    return f"{', '.join(told[:MOST_ENDS])} to {', '.join(told[-MOST_ENDS:])}"


def lines(told: Mapping[str, str]) -> list[str]:
    """Return what is told as lines of text, ``how wrong: 5.1% in the mean, ...``."""
    return [f"{about}: {text}" for about, text in told.items()]
