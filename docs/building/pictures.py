"""Which picture answers the question of each experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dlas.face.reporting import context_of
from dlas.face.reporting.blocks import Figure
from dlas.face.reporting.sections import (
    accuracy,
    batches,
    break_even,
    clocks,
    compression,
    latency,
    operators,
    paths,
    promises,
    ratios,
)
from dlas.sweep.rows.files import PACKED_FILE
from docs.building.kinds import MOST_PANELS, OfReport, Picture, Predicted, Ratios, found_in
from docs.building.places import EXPERIMENTS
from docs.building.two_runs import Differences

CURVES = (
    "Accuracy by the share of weights removed, from the dense network at 0. The solid line is after "
    "fine-tuning, the dashed one before it; rings are elbows."
)
PICTURES: Mapping[str, Picture] = {
    "compression-digits": OfReport(section=compression.section, name="accuracy-by-ratio", caption=CURVES),
    "dense": Ratios(
        title="Speed against other runtimes",
        quantity="times as fast as the runtime",
        axis="compiler",
        to="hand",
        down="model",
        colour="compiler",
        free=("algorithm",),
        slower=True,
        caption="Each runtime's time over that of code by `hand`, network by network, with 95 % intervals: "
        "right of the dashed line `hand` is the faster.",
    ),
    "devices": Ratios(
        where=("compression=none",),
        title="What WebAssembly costs",
        quantity="times as long as natively",
        axis="hardware",
        to="local_cpu",
        down="algorithm",
        colour="hardware",
        apart=("model",),
        slower=True,
        caption="Times of the same dense network and algorithm in three engines over those of the "
        "processor's own instructions, with 95 % intervals.",
    ),
    "digits-accuracy": OfReport(
        section=accuracy.section,
        name="accuracy-and-cost",
        panels=("size of the network",),
        caption="Accuracy on the test images by the size of the network. Up and left is better.",
    ),
    "dlas-fashion": OfReport(section=compression.section, name="accuracy-by-ratio", caption=CURVES),
    "dlas-imagenet": OfReport(rows=("x86",), section=latency.section, name="latency"),
    "eager-allocator": Ratios(
        title="Speed with a pinned allocator",
        quantity="times as fast as with glibc's",
        axis="compiler",
        to="torch_eager",
        down="model",
        colour="batch",
        caption="How many times as fast an inference is where freed blocks stay with the process, by batch "
        "size, with 95 % intervals.",
    ),
    "gpu": OfReport(
        section=latency.section,
        name="latency",
        where=("compression=none", "compression=weight_pruning"),
        caption="Times of one image on an NVIDIA H200, untuned, dense and with 90 % of the weights pruned. "
        "Read each panel from left to right.",
    ),
    "kernels": OfReport(
        rows=("networks",),
        section=operators.section,
        name="operators",
        where=("compiler=hand", "batch=1"),
        caption="What share of a network's time each class of kernels takes, compiled by `hand`, one image "
        "at a time.",
    ),
    "leaf-digits": OfReport(rows=("noisy",), section=paths.section, name="paths-by-place"),
    "mirage-simulated": OfReport(
        rows=("networks",),
        section=clocks.section,
        name="latency-by-clock",
        caption="Simulated: times of ten networks at 20 settings of three clocks, by setting.",
    ),
    "ofa-latency": Predicted(
        predictor="additive", target="latency_s", hold_out="model/5", options={"costs": "stage"}
    ),
    "precision": Ratios(
        where=("dataset=random",),
        title="Speed of smaller numbers",
        quantity="times as fast as in float32",
        axis="compression",
        to="none",
        down="algorithm",
        colour="compression",
        apart=("model", "compiler"),
        caption="How many times as fast a network is in each type as in float32, by the same algorithm and "
        "compiler, with 95 % intervals.",
    ),
    "sparse-break-even": OfReport(
        section=break_even.section, name="break-even", where=("compiler=hand", "compiler=onnxruntime")
    ),
    "sparse-networks": OfReport(
        section=promises.section,
        name="expected-and-achieved",
        where=("compiler=hand", "compiler=onnxruntime"),
    ),
    "supernet-digits": OfReport(
        section=accuracy.section,
        name="accuracy-and-cost",
        panels=("latency",),
        caption="Accuracy and latency of 200 drawn subnetworks. Up and left is better; the large dots are "
        "the Pareto set.",
    ),
    "training-cost": OfReport(section=batches.section, name="latency-by-batch"),
    "training-digits": Predicted(
        predictor="additive", target="peak_memory_bytes", hold_out="compression.level"
    ),
    "tuned-vs-untuned": OfReport(
        section=latency.section, name="latency", where=("compiler=untuned", "compiler=metaschedule")
    ),
    "two-runs": Differences(
        runs=(("a", "b"), ("a", "slow3"), ("a", "slow5"), ("busy-b", "busy-c"), ("busy-b", "busy-slow10")),
    ),
}
"""The pictures by the names of experiments; another experiment has the first that its rows can fill of
:data:`OTHERWISE`.
"""
OTHERWISE = (
    break_even.section,
    compression.section,
    ratios.tuning,
    ratios.runtimes,
    batches.section,
    promises.section,
    latency.section,
)


def figure_of(name: str) -> Figure:
    """Return the figure of an experiment's picture."""
    folder = EXPERIMENTS / name
    return PICTURES[name].figure(folder) if name in PICTURES else _default(folder)


def _default(folder: Path) -> Figure:
    """Return a readable figure of an experiment that has none of its own."""
    kept = sorted(file.parent for file in folder.glob(f"*/{PACKED_FILE}"))
    context = context_of([next((each for each in kept if each.name == "rows"), kept[0])])
    found = [figure for section in OTHERWISE for figure in found_in(section(context))]
    readable = next((figure for figure in found if len(figure.panels) <= MOST_PANELS), found[-1])
    return replace(readable, panels=readable.panels[:MOST_PANELS])
