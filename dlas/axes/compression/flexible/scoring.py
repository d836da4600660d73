"""Accuracy and multiply-adds of every path of a flexible network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import torch

from dlas.axes.compression.flexible.module import DEEP, SHALLOW, FlexibleModule
from dlas.networks.counting import count_macs
from dlas.networks.forward import evaluating
from dlas.networks.scoring import batches
from dlas.stack import Split


def path_accuracies(module: FlexibleModule, split: Split, paths: Sequence[str]) -> dict[str, float]:
    """Return the share of images that each path classifies correctly; all of the split is read."""
    device = next((tensor.device for tensor in module.parameters()), torch.device("cpu"))
    right: Counter[str] = Counter()
    with evaluating(module):
        for images, labels in batches(split):
            outputs = module.outputs(images.to(device), paths)
            right.update(
                {path: int((found.cpu().argmax(1) == labels).sum()) for path, found in outputs.items()}
            )
    return {path: right[path] / len(split) for path in paths}


def path_macs(module: FlexibleModule, shape: tuple[int, int, int], paths: Collection[str]) -> dict[str, int]:
    """Return the multiply-adds of each path for one image [c, h, w].

    Phases keep their sizes, so that each one adds or saves as much whatever the others are.
    """
    count = len(module.phases)
    legacy = count_macs(module.at(DEEP * count), shape)
    singles = [DEEP * phase + SHALLOW + DEEP * (count - phase - 1) for phase in range(count)]
    saved = [legacy - count_macs(module.at(path), shape) for path in singles]
    return {
        path: legacy - sum(less for bit, less in zip(path, saved, strict=True) if bit == SHALLOW)
        for path in paths
    }


def undominated(accuracy: Mapping[str, float], cost: Mapping[str, float]) -> list[str]:
    """Return the Pareto set, the cheapest path first.

    A path is not in it if another is at least as accurate, costs no more, and is better in one of the two.
    """

    def dominates(one: str, other: str) -> bool:
        at_least = accuracy[one] >= accuracy[other] and cost[one] <= cost[other]
        return at_least and (accuracy[one], cost[one]) != (accuracy[other], cost[other])

    best = [path for path in accuracy if not any(dominates(other, path) for other in accuracy)]
    return sorted(best, key=lambda path: (cost[path], path))
