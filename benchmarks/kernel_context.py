"""Do caches explain what a kernel takes in a network?  ``python -m benchmarks.kernel_context``.

Convolutions of the drawn networks of ``experiments/kernels``, each with the ReLU that it fuses, are built as
networks of their own, and timed in turns: hot, the shortest of three calls with the same input, and cold,
after a buffer larger than the last cache was written: weights and code are gone, too.  Then times in the
drawn networks are fitted to the hot ones, and to both, each tenth held out: what knowing the caches' state
could tell a predictor at best.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict
from torch import nn

from dlas.bench.measuring.machine import Machine
from dlas.networks.torch.network import TorchNetwork
from dlas.prediction.learning.evaluation import CLOSE
from dlas.schedules.spatial_pack import SpatialPack
from dlas.stack import Conv, Facts, Hardware, Layer
from dlas.sweep.rows.layer_times import timed_layers
from dlas.sweep.rows.operators import class_of
from dlas.sweep.rows.results import read_rows
from dlas.sweep.study import parts
from dlas.testing.networks import random_images

DRAWN = Path("experiments/kernels/rows")
COMPILERS = ("onnxruntime", "hand")
LEAST_S = 50e-6
"""Shorter kernels take less than a call of a network costs."""
ROUNDS = 15
BUFFER = np.zeros(2 * max(size or 0 for size in Machine().caches().values()) or 64 << 20, np.uint8)
"""Twice as large as the last cache."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Kernel:
    """A convolution, perhaps with a ReLU, of a drawn network."""

    convolution: Conv
    relu: bool
    kind: str
    """Class of its operator."""

    @classmethod
    def of(cls, layer: Layer) -> Self | None:
        """Return a row's kernel; None of one that a convolution alone, or with a ReLU, does not compute."""
        if layer.get("operator") != "Conv" or list(layer["fused"]) not in ([], ["Relu"]):
            return None
        top, left, bottom, right = layer["padding"]
        if (top, left) != (bottom, right):
            return None
        (down, along), (low, wide) = layer["strides"], layer["dilation"]
        convolution = Conv(
            name="",
            n=layer["n"],
            c=layer["c"],
            h=layer["h"],
            w=layer["w"],
            k=layer["k"],
            r=layer["r"],
            s=layer["s"],
            groups=layer["groups"],
            strides=(down, along),
            padding=(top, left, bottom, right),
            dilation=(low, wide),
        )
        return cls(convolution, bool(layer["fused"]), class_of(layer))

    def network(self) -> TorchNetwork:
        """Return it as a network of its own."""
        told = self.convolution
        layer = nn.Conv2d(
            told.c, told.k, (told.r, told.s), told.strides, told.padding[:2], told.dilation, told.groups
        )
        layers = [layer, nn.ReLU()] if self.relu else [layer]
        return TorchNetwork(nn.Sequential(*layers), Facts((told.c, told.h, told.w), told.k))


def main() -> None:
    """Time kernels hot and cold, and print what that tells of their times in networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kernels", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    device: Hardware = parts.make("hardware", "local_cpu", {"threads": 1})
    device.prepare()
    print("| compiler | kernels | cold / hot: quartiles | inside / hot: quartiles | told by hot | by both |")
    print("|---|---|---|---|---|---|", flush=True)
    for compiler in COMPILERS:
        inside = seconds_inside(DRAWN, compiler)
        drawn = draw(list(inside), given.kernels, given.seed)
        times = np.array([timed(each, compiler, device) for each in drawn])
        print(line(compiler, drawn, times, np.array([inside[each] for each in drawn])), flush=True)


def seconds_inside(folder: Path, compiler: str) -> dict[Kernel, float]:
    """Return what the different convolutions of a compiler's rows took on one thread, each the first time."""
    found: dict[Kernel, float] = {}
    for row in read_rows(folder):
        if not row.timed or (row.compiler["name"], row.hardware["threads"]) != (compiler, 1):
            continue
        for layer, seconds in timed_layers(row):
            if seconds >= LEAST_S and (kernel := Kernel.of(layer)) is not None:
                found.setdefault(kernel, seconds)
    return found


def draw(every: Sequence[Kernel], count: int, seed: int) -> list[Kernel]:
    """Return so many of them, at random."""
    places = np.random.default_rng(seed).permutation(len(every))[:count]
    return [every[place] for place in np.sort(places)]


def timed(kernel: Kernel, compiler: str, device: Hardware) -> tuple[float, float]:
    """Return the median seconds of a call with what it reads in a cache, and without."""
    network, batch = kernel.network(), kernel.convolution.n
    made = parts.make("compiler", compiler, {})
    with tempfile.TemporaryDirectory() as name:
        folder, target = Path(name), device.target()
        made.build(network, lambda: SpatialPack(layout="blocked"), target, batch, folder)
        program = made.load(folder, lambda: network, target)
        run = program.bind(random_images(batch, network.facts.shape))
        hot, cold = [], []
        for _ in range(ROUNDS):
            forget()
            cold.append(seconds_of(run))
            hot.append(min(seconds_of(run) for _ in range(3)))
    return statistics.median(hot), statistics.median(cold)


def seconds_of(run: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def forget() -> None:
    """Write a buffer that leaves nothing else in the caches."""
    np.add(BUFFER, 1, out=BUFFER)


def line(compiler: str, drawn: Sequence[Kernel], times: Floats, inside: Floats) -> str:
    """Return a line of the table."""
    hot, cold = np.log(times).T
    kinds = sorted({each.kind for each in drawn})
    of_kind = np.array([[each.kind == kind for kind in kinds] for each in drawn], float)
    known = (hot[:, None], np.stack([hot, cold], axis=1))
    shares = [f"{within(np.hstack([of_kind, each]), np.log(inside)):.0%}" for each in known]
    ratios = [quartiles(each - hot) for each in (cold, np.log(inside))]
    return f"| {compiler} | {len(drawn)} | {' | '.join([*ratios, *shares])} |"


def quartiles(logarithms: Floats) -> str:
    """Return the quartiles of ratios."""
    return ", ".join(f"{np.exp(each):.2f}" for each in np.percentile(logarithms, (25, 50, 75)))


def within(features: Floats, inside: Floats) -> float:
    """Return the share of kernels, held out, whose times inside networks are told within 10 %."""
    folds = KFold(10, shuffle=True, random_state=0)
    told = cross_val_predict(LinearRegression(fit_intercept=False), features, inside, cv=folds)
    return float(np.mean(np.abs(np.expm1(told - inside)) <= CLOSE))


if __name__ == "__main__":
    main()
