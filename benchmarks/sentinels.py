"""Which fixed program tells what the machine does to a network?  ``python -m benchmarks.sentinels``.

Fixed programs and layers, run by ONNX Runtime on one thread, take turns, each for about a millisecond.  What
slows a layer for seconds is to slow the fixed program beside it as well.  Printed are, for each of both, the
correlation of the logarithms of their times, each the mean of so many turns; by how much a layer slows for
each share that the program does; and what standard deviation is left of the layer's time.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Mapping
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import onnxruntime
import torch
from torch import nn

Run = Callable[[], object]
SAMPLE_S = 1e-3
SIDE = 32
PAUSE_S = 0.02
"""Between turns: what is looked for lasts for longer."""
TOGETHER = (1, 40, 160)
"""Turns that are taken together."""


def programs() -> dict[str, Run]:
    """Return the fixed programs; ``roots`` is the sentinel's."""
    doubles, roots = np.linspace(1, 2, 16_384), np.empty(16_384)
    few, sums = np.ones(2_048, np.float32), np.empty(2_048, np.float32)
    some, copies = np.ones(32_768, np.float32), np.empty(32_768, np.float32)
    many, moved = np.ones(2**21, np.float32), np.empty(2**21, np.float32)
    square = torch.ones(96, 96)
    return {
        "roots": lambda: np.sqrt(doubles, out=roots),
        "sums in L1": lambda: np.add(few, few, out=sums),
        "sums in L2": lambda: np.add(some, some, out=copies),
        "copy in L3": lambda: np.copyto(moved, many),
        "product 96x96": lambda: torch.mm(square, square),
    }


def layers() -> dict[str, Run]:
    """Return layers behind a 1x1 convolution, on one image of 32 by 32."""
    made = {
        "depthwise 3x3, 128": nn.Conv2d(128, 128, 3, padding=1, groups=128),
        "depthwise 3x3, 256": nn.Conv2d(256, 256, 3, padding=1, groups=256),
        "1x1, 16": nn.Conv2d(16, 16, 1),
        "3x3, 64": nn.Conv2d(64, 64, 3, padding=1),
    }
    return {
        name: session(nn.Sequential(nn.Conv2d(3, each.in_channels, 1), each)) for name, each in made.items()
    }


def session(module: nn.Module) -> Run:
    """Return a run of a module on one thread of ONNX Runtime."""
    image = torch.randn(1, 3, SIDE, SIDE)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with TemporaryDirectory() as folder:
        file = f"{folder}/network.onnx"
        torch.onnx.export(module.eval(), (image,), file, dynamo=False, input_names=["image"])
        made = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = {"image": image.numpy()}
    return lambda: made.run(None, given)


def sampled(runs: Mapping[str, Run], seconds: float) -> dict[str, npt.NDArray[np.float64]]:
    """Return the logarithms of the times of everything by turns, [turns]."""
    calls = {name: max(1, round(SAMPLE_S / taken(run, 1))) for name, run in runs.items()}
    found: dict[str, list[float]] = {name: [] for name in runs}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, run in runs.items():
            found[name].append(taken(run, calls[name]))
        time.sleep(PAUSE_S)
    return {name: np.log(times) for name, times in found.items()}


def taken(run: Run, calls: int) -> float:
    """Return the seconds of a call, the median of three times so many."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180.0)
    given = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    fixed, made = programs(), layers()
    times = sampled({**fixed, **made}, given.seconds)
    print(f"| turns together | layer | varies by | {' | '.join(fixed)} |\n|---|---|---|{'---|' * len(fixed)}")
    for count in TOGETHER:
        turns = len(times["roots"]) // count * count
        means = {name: each[:turns].reshape(-1, count).mean(axis=1) for name, each in times.items()}
        for layer in made:
            cells = " | ".join(told(means[program], means[layer]) for program in fixed)
            print(f"| {count} | {layer} | {means[layer].std():.1%} | {cells} |")


def told(program: npt.NDArray[np.float64], layer: npt.NDArray[np.float64]) -> str:
    """Return the correlation, the slope, and what is left of a layer's deviation."""
    slope, level = np.polyfit(program, layer, 1)
    left = float((layer - slope * program - level).std())
    return f"{np.corrcoef(program, layer)[0, 1]:.2f}, {slope:.2f}, {left:.1%}"


if __name__ == "__main__":
    main()
