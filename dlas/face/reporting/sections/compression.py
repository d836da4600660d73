"""Accuracy and storage of compressed networks: the paper's Figure 3 and Tables 2 and 5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dlas.analysis.matching import natural
from dlas.analysis.observations.evidence import networks
from dlas.face.reporting import charts
from dlas.face.reporting.blocks import Absent, Block, Figure, Panel, Section
from dlas.face.reporting.context import Context
from dlas.face.reporting.sections.compression_tables import (
    accuracy_interval,
    by_network,
    choice,
    drawn_percent,
    images,
    percent,
    storage,
)
from dlas.face.reporting.sections.compression_types import types
from dlas.sweep.rows.trajectories import ONLY, START, Place, Trajectory, TrajectoryStep, called


def section(context: Context) -> Section | Absent:
    """Return accuracy by compression, the level to choose, and the storage of each network."""
    title = "Accuracy and storage under compression"
    every = networks(context.points)
    if not (every["kind"] != "dense").any():
        return Absent(title, "points of a compressed network")
    if every["accuracy"].isna().all():
        lead = "No accuracy is known for these networks, so no level can be chosen."
        return Section("compression", title, lead, [storage(context, every)])
    dense = by_network(every[every["kind"] == "dense"])
    curves = [_with_start(curve, dense.get(curve.network)) for curve in context.details.trajectories]
    blocks: list[Block] = [_figure(context, curves)] if curves else []
    smaller = types(context, every)
    blocks += [smaller] if smaller.panels else []
    blocks += [choice(context, every, curves, dense), storage(context, every)]
    return Section("compression", title, _lead(curves), blocks)


def _with_start(curve: Trajectory, dense: Mapping[Any, Any] | None) -> Trajectory:
    """Return a curve with its dense network as the first step, from that network's own row if need be."""
    if dense is None:
        return curve
    steps = dict(curve.steps)
    if START not in steps and pd.notna(dense["accuracy"]):
        has_validation = pd.notna(dense["validation_accuracy"])
        validation = float(dense["validation_accuracy"]) if has_validation else None
        steps[START] = TrajectoryStep(*START, float(dense["accuracy"]), validation=validation)
    return replace(curve, steps=steps, images=curve.images or images(dense))


def _lead(curves: Sequence[Trajectory]) -> str:
    """Return how far each technique can prune the networks that all of them prune, in a sentence each."""
    ratios: dict[str, dict[tuple[str, str, int], list[float]]] = {}
    for curve in curves:
        place, why = curve.chosen()
        if place is not None and why != ONLY:
            of_name = ratios.setdefault(curve.name, {})
            of_name.setdefault(curve.network, []).append(curve.steps[place].ratio)
    networks = set.intersection(*map(set, ratios.values())) if ratios else set()
    lead = "Levels are chosen on validation images and reported on test images."
    if not networks:
        return lead
    several = f" of {len(networks)} networks" if len(networks) > 1 else ""
    sentences = [
        f"{name} removes {_span([ratio for network in networks for ratio in of_name[network]])} of the "
        f"convolutions' weights{several}"
        for name, of_name in sorted(ratios.items())
    ]
    return f"At its elbow, or within 1 point of the dense network, {'; '.join(sentences)}. {lead}"


def _span(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _figure(context: Context, curves: Sequence[Trajectory]) -> Figure:
    """Return accuracy by the share of weights removed, a panel a technique and dataset."""
    panels: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, curve in enumerate(curves):
        panels.setdefault((curve.dataset, curve.technique), []).extend(_rows(context, curve, number))
    titles = _titles(context, curves)
    least = {
        dataset: _lower_end(row for key, rows in panels.items() if key[0] == dataset for row in rows)
        for dataset in dict.fromkeys(dataset for dataset, _ in panels)
    }
    colours = context.colours("model")
    specs = {
        dataset: charts.falling("convolution weights removed, %", "accuracy on test images, %", colours, low)
        for dataset, low in least.items()
    }
    drawn = [
        Panel(titles[key], panels[key], key[0])
        for key in sorted(panels, key=lambda key: natural(titles[key]))
    ]
    rings = sum(len(curve.elbows) for curve in curves)
    sentence = (
        "Accuracy by the share of weights removed, from the dense network at 0. The solid line is after "
        "fine-tuning, the dashed one before it"
        + (", rings are elbows" if rings else "")
        + (", bars 95 % intervals for the number of test images" if any(c.images for c in curves) else "")
        + f". {_fallen(curves)}"
    )
    title = "Accuracy against compression"
    return Figure("accuracy-by-ratio", title, sentence, drawn, specs, colours, "model", False)


def _titles(context: Context, curves: Sequence[Trajectory]) -> dict[tuple[str, str], str]:
    """Return the title of each panel, by dataset and technique."""
    names = called(curves)
    return {
        (curve.dataset, curve.technique): names[curve.technique]
        + (f" · {curve.dataset}" if "dataset" in context.varying else "")
        for curve in curves
    }


def _lower_end(rows: Iterable[Mapping[str, Any]]) -> float:
    accuracies = [row[name] for row in rows for name in ("y", "b", "lo") if row[name] is not None]
    return max(0.0, math.floor(min(accuracies, default=0.0) / 5) * 5.0)


def _fallen(curves: Sequence[Trajectory]) -> str:
    """Return the loss of accuracy of the most compressed networks, in a sentence."""
    drops = [
        steps[0][1].accuracy - steps[-1][1].accuracy
        for curve in curves
        if len(steps := curve.ordered) > 1 and START in curve.steps
    ]
    if not drops:
        return "There is no dense network to compare them with."
    return (
        f"At their last level, the {len(drops)} lines are between {100 * min(drops):.1f} and "
        f"{100 * max(drops):.1f} points below their dense network."
        if len(drops) > 1
        else f"At its last level, the line is {100 * drops[0]:.1f} points below its dense network."
    )


def _rows(context: Context, curve: Trajectory, number: int) -> list[dict[str, Any]]:
    return [
        {
            "p": curve.lines.get(place),
            "x": drawn_percent(step.ratio),
            "y": drawn_percent(step.accuracy),
            "b": drawn_percent(step.accuracy if place == START and _tuned(curve) else step.before),
            "lo": drawn_percent(interval[0]),
            "hi": drawn_percent(interval[1]),
            "e": place in curve.elbows,
            "c": curve.model,
            "d": number,
            "t": _in_words(curve, place, step),
        }
        for place, step in curve.ordered
        for interval in [accuracy_interval(step.accuracy, curve.images)]
    ]


def _tuned(curve: Trajectory) -> bool:
    return any(step.before is not None for step in curve.steps.values())


def _in_words(curve: Trajectory, place: Place, step: TrajectoryStep) -> str:
    if place == START:
        return f"{curve.model}, dense: {100 * step.accuracy:.2f} %"
    text = f"{curve.model}, level {step.level:g}: {100 * step.accuracy:.2f} %"
    text += f", {100 * step.before:.2f} % before fine-tuning" if step.before is not None else ""
    return text + (", the elbow" if place in curve.elbows else "")
