"""Does the memory of a row repeat, and is it what torch allocates? ``python -m benchmarks.memory``.

Five points are measured several times, each time in folders of their own; by how much their peaks differ is
printed, and their ratio to torch's own count.  torch's profiler records what its allocator gives and takes
back.  What a convolution takes and gives back before it ends is scratch memory of oneDNN, counted apart: a
buffer of partial sums for each thread may be large and hardly touched, and untouched pages take no memory.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dlas
from dlas.axes.compilers.programs.torch import TorchProgram
from dlas.axes.models.torchvision import Torchvision
from dlas.stack import TRAINING
from dlas.sweep.engine.steps.memory import INFERENCES, TRAINING_STEPS
from dlas.testing.networks import random_images

SIZE, CLASSES = 64, 1000
CONVOLUTIONS = ("aten::convolution_backward", "aten::mkldnn_convolution")
"""What torch's profiler calls the convolutions of oneDNN."""
POINTS = (
    ("training", "resnet18", "torch_eager", 16),
    ("training", "mobilenet_v2", "torch_eager", 32),
    ("inference", "resnet18", "hand", 64),
    ("inference", "resnet18", "onnxruntime", 64),
    ("inference", "resnet18", "torch_eager", 64),
)


def main() -> None:
    """Print a line for each point: its peak, by how much repeats differ, and its ratio to torch's count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    print(
        "| task | network | compiler | batch | peak, MB | spread | torch's count, MB | ratio | scratch, MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for point in POINTS:
            print_line(point, peaks(point, Path(folder), given.repeats))


def peaks(point: tuple[str, str, str, int], folder: Path, repeats: int) -> list[int]:
    """Return a point's peak memory in bytes, measured several times."""
    task, model, compiler, batch = point
    study = {
        "name": "memory",
        "axes": {
            "task": [task],
            "dataset": [{"name": "random", "size": SIZE, "classes": CLASSES, "images": batch}],
            "model": [model],
            "compiler": [compiler],
            "hardware": [{"name": "local_cpu", "threads": 2}],
            "batch": [batch],
        },
        "measure": {"repeats": 1, "slices": 1, "layer_repeats": 0},
    }
    outs = [folder / f"{task}-{model}-{compiler}-{number}" for number in range(repeats)]
    for out in outs:
        dlas.run(study, out=out, cache=folder / "cache", progress="silent")
    return [int(peak) for peak in dlas.read(outs)["peak_memory_bytes"]]


def print_line(point: tuple[str, str, str, int], found: list[int]) -> None:
    """Print one line of the table."""
    task, model, compiler, batch = point
    median, spread = float(np.median(found)), max(found) / min(found) - 1
    beside = " | | "
    if compiler == "torch_eager":
        told, scratch = torch_count(task, model, batch)
        beside = f"{told / 1e6:.1f} | {median / told:.3f} | {scratch / 1e6:.1f}"
    print(
        f"| {task} | {model} | {compiler} | {batch} | {median / 1e6:.1f} | {spread:.2%} | {beside} |",
        flush=True,
    )


def torch_count(task: str, model: str, batch: int) -> tuple[int, int]:
    """Return the peak of what torch's allocator gave for a point, weights included, and its scratch memory.

    Returns
    -------
    peak, scratch : int, bytes
        Of what lives longer than a convolution; and the most that one takes for itself.
    """
    torch.set_num_threads(2)
    network = Torchvision(model).module((3, SIZE, SIZE), CLASSES)
    program: Any = TorchProgram(network, network, torch.device("cpu"))
    images = random_images(batch, (3, SIZE, SIZE))
    training = task == TRAINING
    labels = np.zeros(batch, dtype=np.int64)
    run = program.training(images, labels).step if training else program.bind(images)
    # A program holds the images of its batch, too.
    held = sum(each.nbytes for each in (*network.parameters(), *network.buffers())) + images.nbytes
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        for _ in range(TRAINING_STEPS if training else INFERENCES):
            run()
    results: Any = profiler.profiler
    events = sorted(results.kineto_results.events(), key=lambda each: int(each.start_ns()))
    live = peak = scratch = end = 0
    own: list[int] = []  # what the convolution that runs has taken and not given back
    for event in events:
        start = int(event.start_ns())
        if start >= end:
            live, own = live + sum(own), []
            peak = max(peak, live)
        if event.name() in CONVOLUTIONS and start >= end:
            end = start + int(event.duration_ns())
        if event.name() != "[memory]":
            continue
        size = int(event.nbytes())
        if start < end and size > 0:
            own.append(size)
        elif start < end and -size in own:
            own.remove(-size)
            scratch = max(scratch, -size)
        else:
            live += size
        peak = max(peak, live)
    return int(held + peak), scratch


if __name__ == "__main__":
    main()
