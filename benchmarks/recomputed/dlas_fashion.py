"""``experiments/dlas-fashion``."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from benchmarks.recomputed.kept import one, only, points
from benchmarks.recomputed.markdown import Value
from benchmarks.recomputed.stack_figure import PRUNINGS, StackFigure

FIGURE = StackFigure("dlas-fashion/latency")

NETWORKS = {
    "ResNet-18": "cifar_resnet18",
    "MobileNetV1": "cifar_mobilenet_v1",
    "MobileNetV2": "cifar_mobilenet_v2",
    "VGG-16": "cifar_vgg16",
}
"""What tables call the networks."""
RULES = {"by the knee": "knee", "by one point": None}
COMPRESSIONS = {
    "dense": "none",
    "weights, knee": "weight_pruning",
    "channels, knee": "channel_pruning",
    "float16": "float16",
    "int8": "int8",
}
PERCENT = 100.0


def _trained() -> pd.DataFrame:
    return points("dlas-fashion/rows")


def accuracy(network: str, compression: str, level: float) -> float:
    """Return the accuracy at a level that was asked for, in percent."""
    chosen = only(_trained(), model_name=network, compression_name=PRUNINGS[compression])
    return PERCENT * one(chosen[chosen["compression.level"].astype(str) == str(level)], "accuracy")


def curve(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the accuracy of each network at a level of either pruning."""
    level = float(cells["pruned to"].rstrip(" %")) / PERCENT
    found: dict[str, Value] = {}
    for network, model in NETWORKS.items():
        for name, technique in PRUNINGS.items():
            chosen = only(_trained(), model_name=model, compression_name=technique)
            at = chosen[chosen["compression.level"].astype(str) == str(level)]
            found[f"{network}: {name}"] = PERCENT * float(at["accuracy"].iloc[0]) if len(at) else None
    return found


def importances(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return ResNet-18's accuracy at a level, filters ranked by plain L1, and by L1 normalised by layer."""
    level = float(cells["pruned to"].rstrip(" %")) / PERCENT
    kept = points("dlas-fashion/plain")
    plain = kept[kept["compression.level"].astype(str) == str(level)]
    return {
        "plain": PERCENT * one(only(plain, model_name=NETWORKS["ResNet-18"]), "accuracy"),
        "normalised": accuracy(NETWORKS["ResNet-18"], "channels", level),
    }


def dense(network: str) -> float:
    """Return the accuracy of the dense network, in percent."""
    return PERCENT * one(only(_trained(), model_name=network, compression_name="none"), "accuracy")


def elbow(network: str, compression: str, rule: str) -> pd.DataFrame:
    """Return the line of an elbow."""
    chosen = only(_trained(), model_name=network, compression_name=PRUNINGS[compression])
    chosen = chosen[chosen["compression.level"].astype(str) == "elbow"]
    return only(chosen, compression__elbow=RULES[rule])


def elbows(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return where a pruning's elbow lies, and its accuracy."""
    line = elbow(NETWORKS[cells["network"]], cells["pruned"], cells["elbow"])
    return {"pruned to": PERCENT * one(line, "ratio"), "accuracy": PERCENT * one(line, "accuracy")}


def typed(network: str, compression: str, calibration: str | None = None) -> float:
    """Return the accuracy of a number type, in percent."""
    chosen = only(_trained(), model_name=network, compression_name=compression)
    if calibration is not None:
        chosen = chosen[chosen["compression"].str.contains("calibration=none") == (calibration == "none")]
    return PERCENT * one(chosen, "accuracy")


def wrong() -> float:
    """Return the number of points whose networks answer with other numbers than in PyTorch."""
    return float((_trained()["status"] == "wrong").sum())


def speed(network: str, compression: str, compiler: str, algorithm: str) -> float | None:
    """Return how many times as fast as dense `direct` in float32 by the same compiler a program is."""
    return FIGURE.speed(network, COMPRESSIONS[compression], compiler, algorithm)


def speeds(cells: Mapping[str, str]) -> dict[str, Value]:
    """Return the speeds of the three algorithms of a compression, sparse ones of pruned networks."""
    return FIGURE.speeds(NETWORKS[cells["network"]], COMPRESSIONS[cells["compression"]], cells["compiler"])


def with_zeros(network: str, pruning: str) -> float | None:
    """Return the speed of dense `direct`, untuned, on weights that were pruned."""
    return speed(network, f"{pruning}, knee", "untuned", "direct")


def unstable() -> float:
    """Return the number of points of `latency.toml` whose times are no result."""
    return FIGURE.unstable()


def lost(network: str, compression: str) -> float:
    """Return by how many points the knee of a pruning is less accurate than the dense network."""
    line = elbow(network, compression, "by the knee")
    return dense(network) - PERCENT * one(line, "accuracy")


def lost_at(network: str, compression: str, level: str) -> float:
    """Return by how many points a level is less accurate than the dense network."""
    return dense(network) - accuracy(network, compression, float(level))


def over_fastest_dense(network: str, compression: str) -> float:
    """Return how many times as fast as the fastest dense program the fastest of a compression is, tuned."""
    return FIGURE.over_fastest_dense(network, PRUNINGS.get(compression, compression), "tuned")


def promised(network: str, compression: str) -> float:
    """Return how many times fewer multiply-adds the knee of a pruning has than the dense network."""
    line = elbow(network, compression, "by the knee")
    return one(line, "macs") / one(line, "effective_macs")


def left(network: str, compression: str) -> float:
    """Return the share of multiply-adds that the knee of a pruning leaves, in percent."""
    return PERCENT / promised(network, compression)
