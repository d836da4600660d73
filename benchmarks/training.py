"""Seconds an epoch of training, against a bare PyTorch loop that does the same work.

The same batches, augmentation, memory format, loss, optimiser and schedule, and the
validation accuracy after every epoch; without Lightning, checkpoints and a seed for
every step.  The two take turns, and every run starts from the same weights.

    python -m benchmarks.training [--epochs 3] [--repeats 5] [--threads N] [--smoke]
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.nn import functional

from dlas.axes.datasets.digits import Digits
from dlas.axes.models.cifar_mobilenet_v2 import CifarMobilenetV2
from dlas.axes.models.cifar_resnet18 import CifarResnet18
from dlas.bench.measuring.machine import Machine
from dlas.networks.channels_last import channels_last_is_safe
from dlas.networks.forward import EVALUATION_BATCH
from dlas.networks.recipes import RECIPES, Recipe
from dlas.networks.training import fit
from dlas.stack import Data, Facts, Workspace

MODELS = (CifarResnet18(width=0.25), CifarMobilenetV2(width=0.25))
TARGET = 1.15


def main(
    epochs: Annotated[int, typer.Option(help="Epochs of a run.")] = 3,
    repeats: Annotated[int, typer.Option(help="Runs of each.")] = 5,
    threads: Annotated[int | None, typer.Option(help="By default as many as there are cores.")] = None,
    smoke: Annotated[bool, typer.Option(help="One short run of each: whether it works.")] = False,
) -> None:
    """Print the seconds of an epoch here and in the bare loop."""
    if smoke:
        epochs, repeats = 1, 1
    torch.set_num_threads(threads or Machine().most_threads())
    data = Digits().load()
    recipe = replace(RECIPES[data.recipe], epochs=epochs)
    table = Table("network", "dlas, s an epoch", "bare, s an epoch", f"ratio (at most {TARGET})", box=None)
    for model in MODELS:
        network = model.construct(Facts(data.shape, data.classes), seed=0)
        start = {name: value.clone() for name, value in network.module.state_dict().items()}
        times: dict[Callable[..., None], list[float]] = {ours: [], bare: []}
        for number in range(repeats + (not smoke)):
            for train, seconds in times.items():
                network.module.load_state_dict(start)
                began = time.perf_counter()
                train(network.module, data, recipe)
                if number or smoke:  # the first runs also load libraries
                    seconds.append((time.perf_counter() - began) / epochs)
        ours_s, bare_s = (statistics.median(seconds) for seconds in times.values())
        table.add_row(
            f"{type(model).__name__}, width {model.width:g}",
            f"{ours_s:.3f}",
            f"{bare_s:.3f}",
            f"{ours_s / bare_s:.3f}",
        )
    Console().print(table)


def ours(module: nn.Module, data: Data, recipe: Recipe) -> None:
    """Train as studies do."""
    with tempfile.TemporaryDirectory() as folder:
        fit(module, data, recipe, Workspace(0, Path(folder), lambda line: None))


def bare(module: nn.Module, data: Data, recipe: Recipe) -> None:
    """Train in a bare PyTorch loop."""
    safe = channels_last_is_safe(module)
    module.to(memory_format=torch.channels_last if safe else torch.contiguous_format)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(
        module.parameters(), recipe.learning_rate, recipe.momentum, weight_decay=recipe.weight_decay
    )
    steps = math.ceil(len(data.train) / recipe.batch)
    total = steps * recipe.epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.learning_rate, total_steps=total)
    assert data.augment is not None
    for epoch in range(recipe.epochs):
        module.train()
        order = np.random.default_rng(epoch).permutation(len(data.train))
        for indices in np.array_split(order, steps):
            images, labels = (torch.from_numpy(part) for part in data.train[indices.tolist()])
            loss = functional.cross_entropy(module(data.augment(images)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        validate(module, data)


@torch.no_grad()
def validate(module: nn.Module, data: Data) -> float:
    """Return the share of validation images that are classified correctly."""
    module.eval()
    right = 0
    for first in range(0, len(data.validation), EVALUATION_BATCH):
        indices = range(first, min(first + EVALUATION_BATCH, len(data.validation)))
        images, labels = (torch.from_numpy(part) for part in data.validation[list(indices)])
        right += int((module(images).argmax(1) == labels).sum())
    return right / len(data.validation)


if __name__ == "__main__":
    typer.run(main)
